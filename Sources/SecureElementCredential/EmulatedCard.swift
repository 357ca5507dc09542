// SPDX-License-Identifier: MIT

public import CardSockets
import FoundationEssentials
import Synchronization
import TagTransport

/// Where an emulated card appears: a virtual reader, a test.
public protocol EmulationHost: Sendable {
    /// Card emulation has begun. Readers may meet the card until ``withdraw()``.
    func present(_ card: EmulatedCard) async

    /// Card emulation has ended: the card leaves the reader. Returns when nothing more is asked of it.
    func withdraw() async
}

/// The card that contactless readers meet while a session emulates one.
///
/// It is there for as long as the state lasts: afterwards every command finds it removed. Only the credential's own
/// contactless instances can be selected: the element's contactless registry sees to that where it has an interface of its own
/// (``SecureElement/routesContactless``), and this card where the element is reached through one connection alone. As a `CardEnd` it belongs on a thread of its own, for it blocks until the session has
/// answered; ``command(_:)`` and ``field(isPresent:)`` do not block.
public final class EmulatedCard: CardEnd, Sendable {
    private let session: CredentialDevice.WeakReference
    private let names: [[UInt8]]
    private let isRouted: Bool
    private let state = Mutex(CardState())

    private struct CardState {
        var hasPower = false
        /// The instance that the reader has selected.
        var selected: [UInt8]?
    }

    init(session: CredentialSession, credential: CredentialSession.Credential, isRouted: Bool) {
        self.session = CredentialDevice.WeakReference(session)
        self.isRouted = isRouted
        names = credential.contactlessNames
    }

    /// A contactless card without historical octets (ISO/IEC 14443-4, PC/SC part 3 3.1.3.2.3).
    public let atr: [UInt8] = [0x3B, 0x80, 0x80, 0x01, 0x01]

    /// The reader's field comes, goes, or comes again: a card that gets power anew has nothing selected.
    public func field(isPresent: Bool) async {
        let isReset = state.withLock { state in
            defer {
                state.hasPower = isPresent
                state.selected = nil
            }
            return state.hasPower && isPresent
        }
        await session.value?.contactlessField(isPresent: isPresent, isReset: isReset, atr: atr)
    }

    /// Answers a command APDU.
    public func command(_ command: [UInt8]) async -> CardAnswer {
        guard let session = session.value else { return .removed }
        let exchange = await session.contactlessBegins(command)
        let (answer, transactions) = await answer(command, session)
        await session.contactlessEnds(answer, to: command, exchange, transactions)
        return answer
    }

    private typealias Reply = CredentialSession.ContactlessReply

    private func answer(_ command: [UInt8], _ session: CredentialSession) async -> Reply {
        guard state.withLock({ $0.hasPower }) else { return (.silence, []) }
        if isRouted { return await session.contactlessExchange(command) }
        guard let parsed = try? CommandAPDU(bytes: command) else { return (.response([0x67, 0x00]), []) }
        // MANAGE CHANNEL and channels other than the basic one (GlobalPlatform 2.3.1 11.7).
        if parsed.ins == 0x70 || parsed.cla & 0x43 != 0 { return (.response([0x68, 0x81]), []) }
        if parsed.ins == 0xA4, parsed.p1 == 0x04, parsed.cla & 0x80 == 0 {
            let name = Array(parsed.data ?? .init())
            guard let full = names.first(where: { !name.isEmpty && $0.starts(with: name) }) else {
                return (.response([0x6A, 0x82]), [])
            }
            let reply = await session.contactlessExchange(command)
            if case .response(let octets) = reply.answer, octets.suffix(2) == [0x90, 0x00] {
                state.withLock { $0.selected = full }
            }
            return reply
        }
        guard state.withLock({ $0.selected }) != nil else { return (.response([0x69, 0x85]), []) }
        return await session.contactlessExchange(command)
    }

    // MARK: - CardEnd

    /// The reader gives the card power, or resets it.
    public func powerOn() { blocking { await self.field(isPresent: true) } }

    /// The reader's field goes.
    public func powerOff() { blocking { await self.field(isPresent: false) } }

    /// Answers a command APDU, and blocks until the session has.
    public func exchange(_ command: [UInt8]) -> CardAnswer { blocking { await self.command(command) } }

    /// Runs what the session does from a thread that may wait.
    private func blocking<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Value {
        let result = Handover<Value>()
        Task { result.give(await body()) }
        return result.take()
    }
}

extension CredentialSession {
    func contactlessBegins(_ command: [UInt8]) -> UInt64 { link?.observer?.contactlessCommand(command) ?? 0 }

    typealias ContactlessReply = (answer: CardAnswer, transactions: [ContactlessAnswer.Transaction])

    func contactlessEnds(
        _ answer: CardAnswer, to command: [UInt8], _ exchange: UInt64, _ transactions: [ContactlessAnswer.Transaction]
    ) {
        let octets: [UInt8]? = if case .response(let octets) = answer { octets } else { nil }
        link?.observer?.contactlessAnswer(octets, to: command, exchange)
        if case .cardEmulation = machine.state { transactions.forEach(tellTransaction) }
    }

    func contactlessField(isPresent: Bool, isReset: Bool, atr: [UInt8]) async {
        guard let link, emulated != nil else { return }
        link.observer?.contactlessField(isPresent: isPresent, atr: atr)
        if link.device.element.routesContactless {
            await link.device.lane.enter()
            await link.device.element.contactlessPower(isPresent)
            await link.device.lane.leave()
        }
        if !isReset { await link.device.readerField(isPresent: isPresent) }
    }

    /// A command from the reader, in its turn among the session's calls.
    func contactlessExchange(_ command: [UInt8]) async -> ContactlessReply {
        guard let link else { return (.removed, []) }
        await link.device.lane.enter()
        holdsLane = true
        expire()
        let reply = await emulatedAnswer(command, link)
        await cleanUp(link)
        holdsLane = false
        await link.device.lane.leave()
        // The card is taken from the reader by another task: the reader's thread waits for this answer.
        if withdrawsCard { Task { await settle() } }
        return reply
    }

    private func emulatedAnswer(_ command: [UInt8], _ link: Link) async -> ContactlessReply {
        guard case .cardEmulation = machine.state else { return (.removed, []) }
        do throws(SecureElementError) {
            let answer = try await link.device.element.contactless(command)
            return (.response(answer.response), answer.transactions)
        } catch {
            let code = error.errorCode(link.device.rules)
            link.observer?.happened("backendError", [.init("reason", .text(code.name))], call: nil)
            finish(code, call: nil)
            return (.removed, [])
        }
    }

    private func tellTransaction(_ transaction: ContactlessAnswer.Transaction) {
        let event = ConnectivityEvent(
            instanceApplicationIdentifier: .init(transaction.instanceAID), data: .init(transaction.data)
        )
        tell(
            .connectivityEvent(event),
            [
                .init("instanceApplicationIdentifier", .octets(transaction.instanceAID)),
                .init("data", .octets(transaction.data)),
            ])
    }
}
