// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import TagTransport

extension CoreExtendedNFC {
    /// Reads the NDEF message of a tag.
    ///
    /// A tag without a message gives a message without records.
    ///
    /// - Parameter info: says which mapping is used; a card that is no NFC Forum tag by its kind is tried as Type 4.
    /// - Throws: ``NFCError``: `unsupportedOperation` for kinds of cards without a mapping, `applicationNotFound` when there is no NDEF
    ///   application, `invalidResponse` when what is there is no message.
    public static func readNDEF(info: CardInfo, transport: any NFCTagTransport) async throws -> NDEFMessage {
        try await facing {
            switch try mapping(of: info) {
            case .type4:
                let data = try await readType4NDEF(transport: transport)
                return data.isEmpty ? NDEFMessage(records: []) : try NDEFMessage(data: data)
            }
        }
    }

    /// Writes an NDEF message in an order that a tag taken away meanwhile survives: it has the old message or the new one; or none, when the
    /// message is longer than one command takes (what the container says, at most 253 octets).
    ///
    /// - Throws: ``NFCError``: `tagLocked` when it may not be written, `unsupportedOperation` when the message does not fit.
    public static func writeNDEF(
        _ message: NDEFMessage, info: CardInfo, transport: any NFCTagTransport
    ) async throws {
        try await facing {
            switch try mapping(of: info) {
            case .type4: try await writeType4NDEF(message.data, transport: transport)
            }
        }
    }

    /// Makes a tag an empty NDEF tag. A DESFire card without an NDEF application gets one, which needs the right to create one freely; a
    /// Type 4 tag loses its message.
    public static func formatNDEF(info: CardInfo, transport: any NFCTagTransport) async throws {
        try await facing {
            switch try mapping(of: info) {
            case .type4:
                do {
                    try await writeType4NDEF(Data(), transport: transport)
                } catch let error as NFCError where info.type.family == .mifareDesfire && error.saysNoTag {
                    try await DESFireNDEF.format(transport: transport)
                }
            }
        }
    }

    /// The capability container of a Type 4 tag.
    public static func readType4CapabilityContainer(transport: any NFCTagTransport) async throws -> Type4CC {
        try await facing {
            var tag = Type4Tag(transport: transport)
            return try await tag.open()
        }
    }

    @available(*, deprecated, renamed: "readType4CapabilityContainer(transport:)")
    public static func readType4CC(transport: any NFCTagTransport) async throws -> Type4CC {
        try await readType4CapabilityContainer(transport: transport)
    }

    /// The octets of the message of a Type 4 tag; empty when there is none.
    public static func readType4NDEF(transport: any NFCTagTransport) async throws -> Data {
        try await facing {
            var tag = Type4Tag(transport: transport)
            return try await tag.message()
        }
    }

    /// Writes the octets of a message to a Type 4 tag.
    public static func writeType4NDEF(_ data: Data, transport: any NFCTagTransport) async throws {
        try await facing {
            var tag = Type4Tag(transport: transport)
            try await tag.write(data)
        }
    }

    private enum Mapping {
        case type4
    }

    private static func mapping(of info: CardInfo) throws -> Mapping {
        switch info.type {
        case .ntag424DNA, .type4NDEF, .smartMX, .ePassport, .mifareDesfire, .mifareDesfireEV1, .mifareDesfireEV2,
            .mifareDesfireEV3:
            return .type4
        default: throw NFCError.unsupportedOperation("no NDEF mapping for \(info.type.description)")
        }
    }

    private static func facing<Result>(_ work: () async throws -> Result) async throws -> Result {
        do {
            return try await work()
        } catch {
            throw NFCError.facing(error)
        }
    }
}

extension NFCError {
    /// Whether a Type 4 tag was not found, or only half of one.
    fileprivate var saysNoTag: Bool {
        switch self {
        case .applicationNotFound, .invalidResponse, .unexpectedStatusWord(0x6A, 0x82): true
        default: false
        }
    }
}
