// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import GlobalPlatform
import Octets
public import SecureElementCredential
import Synchronization
public import TagTransport

/// Runs a ``CredentialScript`` on a secure element behind a transport.
///
/// Session time stands still but for `wait`, unless the arguments want real time; then every step looks at the
/// environment's clock, so that a replay sees the recorded times.
public enum CredentialFlow: Flow {
    /// What a run of the flow takes.
    public struct Arguments: Codable, Sendable, Equatable {
        /// The text of a ``CredentialScript``.
        public var script: String
        /// `ios26.1` or `ios27.1`, the default.
        public var rules: String?
        /// Whether session time is real time; false when nil.
        public var realTime: Bool?
        /// The issuer security domain's keys, one for all three, in hexadecimal.
        public var key: String?
        /// Its version; 0 for whichever the card takes.
        public var keyVersion: Int?
        /// What can be provisioned.
        public var configurations: [ProductConfiguration]
        /// What the host knows to be on the element.
        public var credentials: [StoredCredential]
        /// Whether the element has a contactless interface beside the transport; else readers are answered over the transport.
        public var hasContactlessInterface: Bool?

        /// The arguments of a run; all but the script have a default.
        public init(
            script: String, rules: String? = nil, realTime: Bool? = nil, key: String? = nil, keyVersion: Int? = nil,
            configurations: [ProductConfiguration] = [], credentials: [StoredCredential] = [],
            hasContactlessInterface: Bool? = nil
        ) {
            self.script = script
            self.rules = rules
            self.realTime = realTime
            self.key = key
            self.keyVersion = keyVersion
            self.configurations = configurations
            self.credentials = credentials
            self.hasContactlessInterface = hasContactlessInterface
        }
    }

    /// An event or a change of state.
    public struct Happening: Codable, Sendable, Equatable {
        /// The event's name, or `management -> wired` for a change of state.
        public var name: String
        /// What tells one event of a name from another; nil where nothing does.
        public var detail: String?
        /// Nanoseconds of session time.
        public var at: Int64
    }

    /// What a step of the script came to.
    public struct Step: Codable, Sendable, Equatable {
        /// Its line in the script, from 1.
        public var line: Int
        /// The call, or the word that is none: `wait`.
        public var call: String
        /// What the call gave, as the script writes it; nil for nothing.
        public var result: String?
        /// The name of the error that it threw; nil when it threw none.
        public var error: String?
        /// After the step: `wired C1`.
        public var state: String
    }

    /// What a whole run came to.
    public struct Outcome: Codable, Sendable, Equatable {
        /// In the order of the script.
        public var steps: [Step]
        /// Events of the stream.
        public var events: [Happening]
        /// Changes of the session's state.
        public var states: [Happening]
        /// What passed between the contactless reader and the card: command and answer in hexadecimal.
        public var contactless: [String]
        /// What the host knows to be on the element at the end.
        public var credentials: [StoredCredential]
    }

    /// The flow's name on the command line.
    public static let name = "credential"
    /// What the trace calls it.
    public static let function = "credential(transport:script:)"

    /// The issuer security domain's key is secret, the script is not.
    public static func secretArguments(of arguments: Arguments) -> Set<String> { arguments.key == nil ? [] : ["key"] }

    /// - Throws: ``CredentialScriptError`` for a script that cannot be read, and for the first step that comes to something
    ///   else than it says.
    public static func run(
        _ arguments: Arguments, over transport: any NFCTagTransport, progress: @escaping @Sendable (String) -> Void
    ) async throws -> Outcome {
        let script = try CredentialScript(arguments.script)
        guard let rules = CredentialRules(named: arguments.rules ?? CredentialRules.ios27_1.name) else {
            throw FlowArgumentError(flow: name, detail: "rules: there are none called \(arguments.rules ?? "")")
        }
        let world = CredentialWorld.current ?? CredentialWorld()
        let registry = CredentialRegistry(arguments.credentials, save: world.save)
        let element = GlobalPlatformElement(
            transport: transport, keys: try keys(of: arguments), configurations: arguments.configurations, registry: registry,
            broker: world.broker, contactless: arguments.hasContactlessInterface == true ? world.contactless : nil,
            holding: world.holding)
        let base = CredentialObservation.current?.observer
        let isRealTime = arguments.realTime ?? false
        let clock = SteppedClock { nanoseconds in if !isRealTime { base?.timePassed(nanoseconds) } }
        let observer = ScriptObserver(base: base, clock: clock)
        let person = ScriptPerson()
        let reader = ScriptReader(outer: world.host)
        let device = CredentialDevice(
            element: element, authorizer: person, rules: rules, policy: CredentialPolicy { _ in }, host: reader, clock: clock,
            installationDelay: .seconds(1))
        let runner = CredentialRunner(
            device: device, clock: clock, observer: observer, person: person, reader: reader, world: world,
            configurations: arguments.configurations, isRealTime: isRealTime)
        let steps = try await CredentialObservation.$current.withValue(CredentialObservation(observer)) {
            try await device.run { try await runner.run(script, progress: progress) }
        }
        let seen = observer.seen.withLock { $0 }
        return Outcome(
            steps: steps, events: seen.events, states: seen.states, contactless: seen.contactless,
            credentials: registry.credentials)
    }

    private static func keys(of arguments: Arguments) throws -> GlobalPlatformKeys? {
        guard let text = arguments.key else { return nil }
        do {
            return try GlobalPlatformKeys(version: UInt8(clamping: arguments.keyVersion ?? 0), single: try Hex.decode(text))
        } catch let error as HexError {
            throw FlowArgumentError(flow: name, detail: "key: \(error)")
        }
    }
}
