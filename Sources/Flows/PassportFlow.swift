// SPDX-License-Identifier: MIT

public import CoreExtendedNFC
public import FoundationEssentials

/// Reads a travel document.
public enum PassportFlow: Flow {
    public struct Arguments: Codable, Sendable, Equatable {
        public var mrzKey: String
        public var dataGroups: [DataGroupId]
        public var performActiveAuth: Bool
        /// Country signing certificates in DER.
        public var trustAnchors: [Data]

        public init(
            mrzKey: String, dataGroups: [DataGroupId] = [.com, .sod, .dg1], performActiveAuth: Bool = true,
            trustAnchors: [Data] = []
        ) {
            self.mrzKey = mrzKey
            self.dataGroups = dataGroups
            self.performActiveAuth = performActiveAuth
            self.trustAnchors = trustAnchors
        }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            self.init(mrzKey: try container.decode(String.self, forKey: .mrzKey))
            dataGroups = try container.decodeIfPresent([DataGroupId].self, forKey: .dataGroups) ?? dataGroups
            performActiveAuth = try container.decodeIfPresent(Bool.self, forKey: .performActiveAuth) ?? performActiveAuth
            trustAnchors = try container.decodeIfPresent([Data].self, forKey: .trustAnchors) ?? trustAnchors
        }
    }

    public static let name = "passport"
    public static let function = "readPassport(transport:mrzKey:dataGroups:performActiveAuth:trustAnchorsDER:onProgress:)"

    public static func secretArguments(of arguments: Arguments) -> Set<String> { ["mrzKey"] }

    public static func run(
        _ arguments: Arguments, over transport: any NFCTagTransport, progress: @escaping @Sendable (String) -> Void
    ) async throws -> PassportModel {
        try await CoreExtendedNFC.readPassport(
            transport: transport, mrzKey: arguments.mrzKey, dataGroups: arguments.dataGroups,
            performActiveAuth: arguments.performActiveAuth, trustAnchorsDER: arguments.trustAnchors, onProgress: progress)
    }
}
