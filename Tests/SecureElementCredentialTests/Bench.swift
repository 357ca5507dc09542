// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import Synchronization
import Testing

@testable import SecureElementCredential

typealias Session = CredentialSession
typealias ErrorCode = CredentialSession.ErrorCode

/// A person whose next answer is set by the test.
final class TestPerson: Authorizer {
    private let answers = Mutex<(sheet: AuthorizationAnswer, alert: Bool, asked: Int)>((.allow, true, 0))
    private let gate = Mutex<TestGate?>(nil)

    func will(_ answer: AuthorizationAnswer) { answers.withLock { $0.sheet = answer } }
    func refusesTheAlert() { answers.withLock { $0.alert = false } }
    func waits(at gate: TestGate) { self.gate.withLock { $0 = gate } }
    /// How often the sheet was shown.
    var asked: Int { answers.withLock { $0.asked } }

    func allowsUse(by application: String) async -> Bool { answers.withLock { $0.alert } }

    func authorize(_ request: AuthorizationRequest, over context: any PresentationContext) async -> AuthorizationAnswer {
        answers.withLock { $0.asked += 1 }
        await gate.withLock { $0 }?.pass()
        return answers.withLock { $0.sheet }
    }
}

/// A door that a call waits at until the test opens it.
actor TestGate {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var watchers: [CheckedContinuation<Void, Never>] = []
    private var arrived = 0

    func pass() async {
        arrived += 1
        watchers.forEach { $0.resume() }
        watchers = []
        if !isOpen { await withCheckedContinuation { waiting.append($0) } }
    }

    /// Returns when somebody stands at the door.
    func someoneWaits() async {
        if arrived == 0 { await withCheckedContinuation { watchers.append($0) } }
    }

    func open() {
        isOpen = true
        waiting.forEach { $0.resume() }
        waiting = []
    }
}

/// A reader that keeps the card that it is shown.
final class TestReader: EmulationHost {
    private let state = Mutex<(card: EmulatedCard?, shown: Int)>((nil, 0))
    var card: EmulatedCard? { state.withLock { $0.card } }
    /// How often a card was shown.
    var shown: Int { state.withLock { $0.shown } }

    func present(_ card: EmulatedCard) async { state.withLock { $0 = (card, $0.shown + 1) } }
    func withdraw() async { state.withLock { $0.card = nil } }
}

/// A device with a secure element in memory, a person, a reader and a clock that the test moves.
struct Bench {
    let element: TestElement
    let person = TestPerson()
    let reader = TestReader()
    let clock = SteppedClock(now: 1_000_000_000)
    let device: CredentialDevice
    let trapped = TrapLog()
    let scene = ProgramScene()

    init(rules: CredentialRules = .ios27_1, _ change: (inout CredentialRules) -> Void = { _ in }) {
        element = TestElement()
        var rules = rules
        change(&rules)
        let trapped = trapped
        device = CredentialDevice(
            element: element, authorizer: person, rules: rules, policy: CredentialPolicy { trapped.add($0) }, host: reader,
            clock: clock, installationDelay: .seconds(3)
        )
    }

    func session() async throws -> Session { try await device.run { try await Session.startSession() } }

    /// A session with the credential that is on the element from the start.
    func withCredential() async throws -> (Session, Session.Credential) {
        let session = try await session()
        let list = try await session.listCredentials()
        return (session, try #require(list.first { $0.name == "wallet" }))
    }

    func wired() async throws -> (Session, Session.Credential) {
        let (session, credential) = try await withCredential()
        try await session.enterWiredMode(using: credential)
        return (session, credential)
    }

    func emulating() async throws -> (Session, Session.Credential) {
        let (session, credential) = try await withCredential()
        try await session.performTransaction(using: credential, over: scene)
        return (session, credential)
    }

    /// A session in each state that is not the last one, with its credential.
    func session(in state: String) async throws -> (Session, Session.Credential) {
        switch state {
        case "wired": try await wired()
        case "cardEmulation": try await emulating()
        default: try await withCredential()
        }
    }
}

final class Counter: Sendable {
    private let value = Mutex(0)
    func add() { value.withLock { $0 += 1 } }
    var count: Int { value.withLock { $0 } }
}

final class TrapLog: Sendable {
    private let list = Mutex<[String]>([])
    func add(_ text: String) { list.withLock { $0.append(text) } }
    var reasons: [String] { list.withLock { $0 } }
}

extension CredentialSession {
    /// The events so far; the session ends with this.
    func eventsToTheEnd() async throws -> [String] {
        try await invalidate()
        return await names(of: eventStream)
    }
}

/// The names of a finished stream's events, with what tells them apart.
func names(of stream: AsyncStream<Session.Event>) async -> [String] {
    var names: [String] = []
    for await event in stream {
        switch event {
        case .sessionInvalidated(let reason): names.append("sessionInvalidated(\(reason))")
        case .fieldStateChanged(let info): names.append("\(info)")
        case .connectivityEvent(let event): names.append("connectivity(\(Hex.encode(event.data)))")
        case .credentialFinishedInstalling(let credential): names.append("installed(\(credential.name))")
        case .cardEmulationTimeout: names.append("cardEmulationTimeout")
        case .presentmentIntentAssertionTimeout: names.append("presentmentIntentAssertionTimeout")
        }
    }
    return names
}
