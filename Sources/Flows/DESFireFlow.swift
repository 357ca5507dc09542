// SPDX-License-Identifier: MIT

import CardCrypto
public import CoreExtendedNFC
public import FoundationEssentials

/// A key of a DESFire or NTAG 424 DNA as an argument.
public struct CardKeyArgument: Codable, Sendable, Equatable {
    public var number: UInt8
    /// `des`, `2k3des`, `3k3des`, `aes`.
    public var type: String
    public var key: Data
    /// Whether it is the master key that the card's own is derived from by its UID and the application (NXP AN10922).
    public var diversified: Bool?

    public init(number: UInt8, type: String, key: Data, diversified: Bool? = nil) {
        self.number = number
        self.type = type
        self.key = key
        self.diversified = diversified
    }

    func value(of flow: String) throws -> DESFireKey {
        guard let cipher = DESFireCipher(rawValue: type) else {
            throw FlowArgumentError(flow: flow, detail: "no key type \(type)")
        }
        return try DESFireKey(cipher, [UInt8](key))
    }
}

/// Reads what a DESFire card gives out.
public enum DESFireFlow: Flow {
    public struct Arguments: Codable, Sendable, Equatable {
        /// Three octets in card order; nil looks at all.
        public var application: Data?
        public var keys: [CardKeyArgument]?
        /// A name of ``DESFireAuthentication``; nil takes the EV1 channel that fits each key.
        public var method: DESFireAuthentication?
        public var framing: DESFireFraming?

        public init(
            application: Data? = nil, keys: [CardKeyArgument]? = nil, method: DESFireAuthentication? = nil,
            framing: DESFireFraming? = nil
        ) {
            self.application = application
            self.keys = keys
            self.method = method
            self.framing = framing
        }
    }

    public static let name = "desfire"
    public static let function = "surveyDESFire(application:keys:method:framing:transport:)"

    public static func secretArguments(of arguments: Arguments) -> Set<String> { arguments.keys == nil ? [] : ["keys"] }

    public static func run(
        _ arguments: Arguments, over transport: any NFCTagTransport, progress: @escaping @Sendable (String) -> Void
    ) async throws -> DESFireSurvey {
        var keys: [UInt8: DESFireKey] = [:]
        for key in arguments.keys ?? [] { keys[key.number] = try key.value(of: name) }
        let masters = (arguments.keys ?? []).filter { $0.diversified == true }.map(\.number)
        return try await CoreExtendedNFC.surveyDESFire(
            application: arguments.application, keys: keys, diversified: Set(masters), method: arguments.method,
            framing: arguments.framing ?? .isoWrapped, transport: transport)
    }
}

/// Reads what an NTAG 424 DNA gives out.
public enum NTAG424Flow: Flow {
    public struct Arguments: Codable, Sendable, Equatable {
        public var key: CardKeyArgument?
        /// `ev2First` or `lrpFirst`.
        public var method: DESFireAuthentication?

        public init(key: CardKeyArgument? = nil, method: DESFireAuthentication? = nil) {
            self.key = key
            self.method = method
        }
    }

    public static let name = "ntag424"
    public static let function = "surveyNTAG424(keyNumber:key:method:transport:)"

    public static func secretArguments(of arguments: Arguments) -> Set<String> { arguments.key == nil ? [] : ["key"] }

    public static func run(
        _ arguments: Arguments, over transport: any NFCTagTransport, progress: @escaping @Sendable (String) -> Void
    ) async throws -> NTAG424Survey {
        try await CoreExtendedNFC.surveyNTAG424(
            keyNumber: arguments.key?.number ?? 0, key: try arguments.key?.value(of: name),
            method: arguments.method ?? .ev2First, transport: transport)
    }
}
