// SPDX-License-Identifier: MIT

public import CoreExtendedNFC
public import FoundationEssentials

/// Reads a travel document.
public enum PassportFlow: Flow {
    public struct Arguments: Codable, Sendable, Equatable {
        /// What opens the chip: one of `mrzKey`, `can`, `pin` and `puk` in JSON.
        public var access: PassportAccess
        public var dataGroups: [DataGroupId]
        public var performActiveAuth: Bool
        /// Country signing certificates in DER or PEM, or master lists.
        public var trustAnchors: [Data]
        /// For Terminal Authentication; nil without.
        public var terminal: Terminal?

        /// A terminal's CV certificates and its private key (PKCS#8, or a bare RSA or EC key), in DER.
        public struct Terminal: Sendable, Equatable {
            public var certificates: [Data]
            public var key: Data

            public init(certificates: [Data], key: Data) {
                self.certificates = certificates
                self.key = key
            }
        }

        public init(
            access: PassportAccess, dataGroups: [DataGroupId] = [.com, .sod, .dg1], performActiveAuth: Bool = true,
            trustAnchors: [Data] = [], terminal: Terminal? = nil
        ) {
            self.access = access
            self.dataGroups = dataGroups
            self.performActiveAuth = performActiveAuth
            self.trustAnchors = trustAnchors
            self.terminal = terminal
        }

        private enum CodingKeys: String, CodingKey {
            case mrzKey, can, pin, puk, dataGroups, performActiveAuth, trustAnchors, terminalCertificates, terminalKey
        }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            func password(_ key: CodingKeys) throws -> String? { try container.decodeIfPresent(String.self, forKey: key) }
            if let can = try password(.can) {
                self.init(access: .can(can))
            } else if let pin = try password(.pin) {
                self.init(access: .pin(pin))
            } else if let puk = try password(.puk) {
                self.init(access: .puk(puk))
            } else {
                self.init(access: .mrz(try container.decode(String.self, forKey: .mrzKey)))
            }
            dataGroups = try container.decodeIfPresent([DataGroupId].self, forKey: .dataGroups) ?? dataGroups
            performActiveAuth = try container.decodeIfPresent(Bool.self, forKey: .performActiveAuth) ?? performActiveAuth
            trustAnchors = try container.decodeIfPresent([Data].self, forKey: .trustAnchors) ?? trustAnchors
            if let key = try container.decodeIfPresent(Data.self, forKey: .terminalKey) {
                terminal = Terminal(
                    certificates: try container.decodeIfPresent([Data].self, forKey: .terminalCertificates) ?? [], key: key)
            }
        }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            switch access {
            case .mrz(let text): try container.encode(text, forKey: .mrzKey)
            case .can(let text): try container.encode(text, forKey: .can)
            case .pin(let text): try container.encode(text, forKey: .pin)
            case .puk(let text): try container.encode(text, forKey: .puk)
            }
            try container.encode(dataGroups, forKey: .dataGroups)
            try container.encode(performActiveAuth, forKey: .performActiveAuth)
            try container.encode(trustAnchors, forKey: .trustAnchors)
            try container.encodeIfPresent(terminal?.certificates, forKey: .terminalCertificates)
            try container.encodeIfPresent(terminal?.key, forKey: .terminalKey)
        }
    }

    public static let name = "passport"
    public static let function =
        "readPassport(transport:access:dataGroups:performActiveAuth:trustAnchorsDER:terminal:onProgress:)"

    public static func secretArguments(of arguments: Arguments) -> Set<String> {
        let password =
            switch arguments.access {
            case .mrz: "mrzKey"
            case .can: "can"
            case .pin: "pin"
            case .puk: "puk"
            }
        return arguments.terminal == nil ? [password] : [password, "terminalKey"]
    }

    public static func run(
        _ arguments: Arguments, over transport: any NFCTagTransport, progress: @escaping @Sendable (String) -> Void
    ) async throws -> PassportModel {
        let terminal: TerminalCredentials?
        do {
            terminal = try arguments.terminal.map {
                try TerminalCredentials(certificatesDER: $0.certificates, privateKeyDER: $0.key)
            }
        } catch {
            throw NFCError.unsupportedOperation("the terminal's certificates and key: \(error)")
        }
        return try await CoreExtendedNFC.readPassport(
            transport: transport, access: arguments.access, dataGroups: arguments.dataGroups,
            performActiveAuth: arguments.performActiveAuth, trustAnchorsDER: arguments.trustAnchors, terminal: terminal,
            onProgress: progress)
    }
}
