// SPDX-License-Identifier: MIT

public import CardSockets
import Synchronization

/// The contactless interface of a secure element in this process: a card that shares its contents with the wired interface,
/// and what its applets say of transactions.
///
/// ```swift
/// let element = try SimulatedSecureElement()
/// let interface = ContactlessInterface(
///     card: { element.contactlessCard(instances: $0) },
///     listen: { hear in element.onEvent { hear($0.instanceAID, $0.data) } })
/// ```
public final class ContactlessInterface: Sendable {
    private let make: @Sendable (_ instances: [[UInt8]]) -> any CardEnd & Sendable
    private let state: Mutex<State>

    private struct State {
        var card: (any CardEnd & Sendable)?
        var transactions: [ContactlessAnswer.Transaction] = []
    }

    /// - Parameters:
    ///   - card: the card that readers meet while these instances are exposed. It lets nothing else be selected.
    ///   - listen: is given, once, who wants to hear the transaction events of applets. An event is told before the answer to the
    ///     command that led to it is handed out.
    public init(
        card: @escaping @Sendable (_ instances: [[UInt8]]) -> any CardEnd & Sendable,
        listen: (_ hear: @escaping @Sendable (_ instanceAID: [UInt8], _ data: [UInt8]) -> Void) -> Void = { _ in }
    ) {
        make = card
        state = Mutex(State())
        listen { [weak self] instance, data in
            self?.state.withLock { state in
                // What happens on the wired interface is no affair of a reader's.
                guard state.card != nil else { return }
                state.transactions.append(ContactlessAnswer.Transaction(instanceAID: instance, data: data))
            }
        }
    }

    func expose(_ instances: [[UInt8]]) {
        let card = make(instances)
        state.withLock { $0 = State(card: card) }
    }

    func withdraw() {
        state.withLock { state in state = State() }
    }

    func power(_ isOn: Bool) {
        guard let card = state.withLock({ $0.card }) else { return }
        if isOn { card.powerOn() } else { card.powerOff() }
    }

    func answer(_ command: [UInt8]) -> (answer: CardAnswer, transactions: [ContactlessAnswer.Transaction]) {
        guard let card = state.withLock({ $0.card }) else { return (.removed, []) }
        let answer = card.exchange(command)
        let transactions = state.withLock { state in
            defer { state.transactions = [] }
            return state.transactions
        }
        return (answer, transactions)
    }
}
