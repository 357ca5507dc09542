// SPDX-License-Identifier: MIT

import Octets
import SecureElementCredential
import Synchronization

/// What a credential script meets outside its session: set by whoever records or replays it.
package struct CredentialWorld: Sendable {
    /// Where the emulated card appears, beside the script's own reader.
    package var host: (any EmulationHost)?
    /// Lets somebody at the reader talk to the card, for at most so many seconds of real time. `step` counts such steps from 0.
    package var reader: (@Sendable (_ card: EmulatedCard, _ seconds: Int, _ step: Int) async -> Void)?
    package var broker: (any AuthorizationBroker)?
    /// The element's contactless interface, for arguments that say it has one.
    package var contactless: ContactlessInterface?
    /// Keeps other programs from the element while something is managed.
    package var holding: (any ElementHolding)?
    /// Told the credentials after each change.
    package var save: @Sendable ([StoredCredential]) -> Void

    package init(
        host: (any EmulationHost)? = nil,
        reader: (@Sendable (_ card: EmulatedCard, _ seconds: Int, _ step: Int) async -> Void)? = nil,
        broker: (any AuthorizationBroker)? = nil, contactless: ContactlessInterface? = nil,
        holding: (any ElementHolding)? = nil, save: @escaping @Sendable ([StoredCredential]) -> Void = { _ in }
    ) {
        self.host = host
        self.reader = reader
        self.broker = broker
        self.contactless = contactless
        self.holding = holding
        self.save = save
    }

    @TaskLocal package static var current: CredentialWorld?
}

/// The reader of a script: it keeps the card that it is shown, and shows it on.
final class ScriptReader: EmulationHost {
    private let held = Mutex<EmulatedCard?>(nil)
    private let outer: (any EmulationHost)?

    init(outer: (any EmulationHost)?) { self.outer = outer }

    var card: EmulatedCard? { held.withLock { $0 } }

    func present(_ card: EmulatedCard) async {
        held.withLock { $0 = card }
        await outer?.present(card)
    }

    func withdraw() async {
        held.withLock { $0 = nil }
        await outer?.withdraw()
    }
}

/// A person who does what the script says.
final class ScriptPerson: Authorizer {
    private let answer = Mutex(AuthorizationAnswer.allow)

    func will(_ answer: AuthorizationAnswer) { self.answer.withLock { $0 = answer } }
    func allowsUse(by application: String) async -> Bool { answer.withLock { $0 == .allow } }
    func authorize(_ request: AuthorizationRequest, over context: any PresentationContext) async -> AuthorizationAnswer {
        answer.withLock { $0 }
    }
}

/// Keeps what happens for the script's result, and hands it on to whoever else looks.
final class ScriptObserver: CredentialObserver {
    struct Seen: Sendable {
        var events: [CredentialFlow.Happening] = []
        /// How many of them the script has read.
        var read = 0
        var states: [CredentialFlow.Happening] = []
        var contactless: [String] = []
        /// What a reader says and has no answer yet.
        var changedAt: Int64?
    }

    private let base: (any CredentialObserver)?
    private let clock: SteppedClock
    let seen = Mutex(Seen())
    /// Events of the stream; others are only told on.
    private static let streamed: Set<String> = [
        "sessionInvalidated", "credentialFinishedInstalling", "fieldStateChanged", "connectivityEvent", "cardEmulationTimeout",
        "presentmentIntentAssertionTimeout",
    ]

    init(base: (any CredentialObserver)?, clock: SteppedClock) {
        self.base = base
        self.clock = clock
    }

    func began(_ function: String, _ arguments: [CredentialArgument]) -> Int { base?.began(function, arguments) ?? 0 }

    func ended(_ call: Int, _ result: Result<[CredentialArgument], CredentialSession.ErrorCode>) { base?.ended(call, result) }

    func changed(from: CredentialSession.State, to: CredentialSession.State, call: Int?) {
        seen.withLock { seen in
            seen.states.append(CredentialFlow.Happening(name: "\(from.name) -> \(to.name)", detail: nil, at: clock.now))
            seen.changedAt = clock.now
        }
        base?.changed(from: from, to: to, call: call)
    }

    func happened(_ name: String, _ detail: [CredentialArgument], call: Int?) {
        if Self.streamed.contains(name) {
            let text = detail.compactMap { argument -> String? in
                switch argument.value {
                case .text(let text) where argument.name != "identifier": text
                case .octets(let octets): Hex.encode(octets)
                case .number(let number): "\(number)"
                default: nil
                }
            }.joined(separator: " ")
            seen.withLock {
                $0.events.append(CredentialFlow.Happening(name: name, detail: text.isEmpty ? nil : text, at: clock.now))
            }
        }
        base?.happened(name, detail, call: call)
    }

    func timePassed(_ nanoseconds: Int64) { base?.timePassed(nanoseconds) }
    func contactlessCard(isPresent: Bool, atr: [UInt8]) { base?.contactlessCard(isPresent: isPresent, atr: atr) }
    func contactlessField(isPresent: Bool, atr: [UInt8]) { base?.contactlessField(isPresent: isPresent, atr: atr) }
    func contactlessCommand(_ command: [UInt8]) -> UInt64 { base?.contactlessCommand(command) ?? 0 }

    func contactlessAnswer(_ answer: [UInt8]?, to command: [UInt8], _ exchange: UInt64) {
        let text = "\(Hex.encode(command)) \(answer.map { Hex.encode($0) } ?? "none")"
        seen.withLock { $0.contactless.append(text) }
        base?.contactlessAnswer(answer, to: command, exchange)
    }
}
