// SPDX-License-Identifier: MIT

import CardSockets
import Flows
import Octets
import SecureElementCredential
import Synchronization
import TraceDecoding
import TraceFile

/// The contactless side of a recorded card emulation.
///
/// The reader sends what the recorded one sent, where it sent it. An element that had a contactless interface of its own has
/// the recorded answers on it, and the recorded transaction events; one without answers over the flow's own transport. What the
/// emulated card answers is part of the flow's result and compared with it.
struct RecordedReader: Sendable {
    /// What the reader did during one step of the script.
    private enum Act: Sendable {
        case power(Bool)
        case command([UInt8])
    }

    private let steps: [[Act]]
    private let exchanges: [RecordedContactlessCard.Exchange]

    /// - Parameter session: the recorded session; the emulated card's rows are those of every transport but the flow's own.
    init(_ session: RecordedSession, flow: RecordedSession.Call, trace: Trace, secrets: SecretStore) {
        guard flow.row.flow == CredentialFlow.name else {
            (steps, exchanges) = ([], [])
            return
        }
        // The trace may say any number.
        let own = (flow.row.transport ?? 1) &- 1
        let calls = session.calls.filter { $0.row.parent == flow.row.id && $0.row.function.hasPrefix("reader(") }
        var acts: [(packet: UInt64, act: Act)] = []
        var exchanges: [RecordedContactlessCard.Exchange] = []
        var places: [UInt64: Int] = [:]
        for row in trace.rows where trace.interfaces.indices.contains(row.interface) {
            guard let packet = row.packetID else { continue }
            switch trace.interfaces[row.interface].kind {
            case .apdu(let reader) where reader != own:
                let octets = SealedPlaces(row: row, secrets: secrets).octets
                if row.direction == .sent {
                    acts.append((packet, .command(octets)))
                    places[packet] = exchanges.count
                    exchanges.append(RecordedContactlessCard.Exchange(command: octets))
                } else if let index = places[packet] {
                    exchanges[index].answer = octets
                }
            case .reader(let reader) where reader != own && row.dissector == "json":
                guard case .reader(let event)? = MetaRow(body: row.body) else { continue }
                if event.name == "reset" { acts.append((packet, .power(true))) }
                if event.name == "powerOff" { acts.append((packet, .power(false))) }
            case .meta where !exchanges.isEmpty:
                guard case .event(let event)? = MetaRow(body: row.body), event.name == "connectivityEvent",
                    let transaction = Self.transaction(event.detail)
                else { continue }
                exchanges[exchanges.count - 1].transactions.append(transaction)
            default: break
            }
        }
        self.exchanges = exchanges
        steps = calls.map { call in
            let end = call.endPacket ?? .max
            return acts.filter { call.packet <= $0.packet && $0.packet <= end }.map(\.act)
        }
    }

    private static func transaction(_ detail: JSONValue?) -> RecordedContactlessCard.Transaction? {
        guard let instance = detail?["instanceApplicationIdentifier"]?.stringValue.flatMap({ try? Hex.decode($0) }),
            let data = detail?["data"]?.stringValue.flatMap({ try? Hex.decode($0) })
        else { return nil }
        return (instance, data)
    }

    /// What a credential script meets outside its session.
    var world: CredentialWorld {
        let card = RecordedContactlessCard(exchanges)
        return CredentialWorld(
            reader: { emulated, _, step in await work(on: emulated, step: step) },
            contactless: ContactlessInterface(card: { _ in card }, listen: card.tell))
    }

    private func work(on card: EmulatedCard, step: Int) async {
        guard steps.indices.contains(step) else { return }
        for act in steps[step] {
            switch act {
            case .power(let isOn): await card.field(isPresent: isOn)
            case .command(let octets): _ = await card.command(octets)
            }
        }
    }
}

/// The contactless interface of a recorded element. A command that was not recorded from here on finds the card gone.
private final class RecordedContactlessCard: CardEnd, Sendable {
    typealias Transaction = (instance: [UInt8], data: [UInt8])

    struct Exchange: Sendable {
        let command: [UInt8]
        var answer: [UInt8]?
        var transactions: [Transaction] = []
    }

    private struct State: Sendable {
        var left: ArraySlice<Exchange>
        var hear: (@Sendable ([UInt8], [UInt8]) -> Void)?
    }

    private let state: Mutex<State>

    init(_ exchanges: [Exchange]) { state = Mutex(State(left: exchanges[...])) }

    var atr: [UInt8] { [] }
    func powerOn() {}
    func powerOff() {}

    @Sendable func tell(_ hear: @escaping @Sendable ([UInt8], [UInt8]) -> Void) { state.withLock { $0.hear = hear } }

    func exchange(_ command: [UInt8]) -> CardAnswer {
        let (found, hear) = state.withLock { state -> (Exchange?, (@Sendable ([UInt8], [UInt8]) -> Void)?) in
            // Without an answer the command did not come so far as to the element.
            guard let index = state.left.firstIndex(where: { $0.command == command && $0.answer != nil }) else {
                return (nil, nil)
            }
            defer { state.left = state.left[(index + 1)...] }
            return (state.left[index], state.hear)
        }
        guard let found, let answer = found.answer else { return .removed }
        if let hear { found.transactions.forEach { hear($0.instance, $0.data) } }
        return .response(answer)
    }
}
