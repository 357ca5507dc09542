// SPDX-License-Identifier: MIT

public import CoreExtendedNFC
public import FoundationEssentials

/// Writes an NDEF message when there is one to write, and reads what is there then.
public enum NDEFFlow: Flow {
    public struct Arguments: Codable, Sendable, Equatable {
        /// The octets of a message to write first.
        public var write: Data?

        public init(write: Data? = nil) { self.write = write }
    }

    public struct Outcome: Codable, Sendable, Equatable {
        public struct Record: Codable, Sendable, Equatable {
            public var type: String
            public var value: String
        }

        /// The octets of the message; empty when there is none.
        public var message: Data
        public var records: [Record]
    }

    public static let name = "ndef"
    public static let function = "readNDEF(info:transport:)"

    public static func secretArguments(of arguments: Arguments) -> Set<String> { [] }

    public static func run(
        _ arguments: Arguments, over transport: any NFCTagTransport, progress: @escaping @Sendable (String) -> Void
    ) async throws -> Outcome {
        let info = CardInfo(type: .type4NDEF, uid: transport.identifier)
        if let octets = arguments.write {
            try await CoreExtendedNFC.writeNDEF(try NDEFMessage(data: octets), info: info, transport: transport)
        }
        let message = try await CoreExtendedNFC.readNDEF(info: info, transport: transport)
        return Outcome(
            message: message.records.isEmpty ? Data() : message.data,
            records: message.records.map { Outcome.Record(type: $0.displayType, value: $0.displayValue) })
    }
}
