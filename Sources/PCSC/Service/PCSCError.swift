// SPDX-License-Identifier: MIT

public import Octets
public import TagTransport

/// A return code of PC/SC other than success: its name, what it means, and what one can do. Equality is on the code.
public struct PCSCError: CodedError {
    /// The code as people search for it: `80100069`.
    public let code: UInt32
    /// The function that returned it; empty when unknown.
    public let call: String

    public init(code: UInt32, call: String = "") {
        self.code = code
        self.call = call
    }

    /// The name in `pcsclite.h`; for an unknown code its hexadecimal digits.
    public var name: String { row?.name ?? digits }

    /// What it means, in plain words.
    public var meaning: String { row?.meaning ?? "a code that PC/SC does not define" }

    /// What can be done about it; empty when nothing general can be said.
    public var remedy: String { row?.remedy ?? "" }

    /// What it is for a transport.
    public var transportCase: TransportError.Case { row?.case ?? .readerFailure }

    /// The code as eight hexadecimal digits.
    public var digits: String {
        let text = String(code, radix: 16, uppercase: true)
        return String(repeating: "0", count: 8 - text.count) + text
    }

    public var description: String {
        "\(digits) \(name): \(meaning)" + (call.isEmpty ? "" : " (\(call))")
    }

    /// The error that transports throw for it, with the code kept.
    public var transportError: TransportError { TransportError(transportCase, code: code, detail: description) }

    /// Every code that pcsc-lite defines.
    public static let all: [PCSCError] = table.keys.sorted().map { PCSCError(code: $0) }

    static let cancelled: UInt32 = 0x8010_0002
    static let insufficientBuffer: UInt32 = 0x8010_0008
    static let timeout: UInt32 = 0x8010_000A
    static let unknownReader: UInt32 = 0x8010_0009
    static let sharingViolation: UInt32 = 0x8010_000B
    static let noReadersAvailable: UInt32 = 0x8010_002E
    static let resetCard: UInt32 = 0x8010_0068

    private var row: Row? { Self.table[code] }

    private struct Row: Sendable {
        let name: String
        let `case`: TransportError.Case
        let meaning: String
        let remedy: String

        init(_ name: String, _ case: TransportError.Case, _ meaning: String, _ remedy: String = "") {
            self.name = name
            self.case = `case`
            self.meaning = meaning
            self.remedy = remedy
        }
    }

    private static let table: [UInt32: Row] = [
        0x8010_0001: Row(
            "SCARD_F_INTERNAL_ERROR", .readerFailure, "pcscd failed inside", "see pcscd's own log: journalctl -u pcscd"),
        0x8010_0002: Row("SCARD_E_CANCELLED", .cancelled, "the call was cancelled"),
        0x8010_0003: Row(
            "SCARD_E_INVALID_HANDLE", .tagConnectionLost, "the connection is closed, or pcscd was started again", "connect again"
        ),
        0x8010_0004: Row("SCARD_E_INVALID_PARAMETER", .readerFailure, "pcscd refused the arguments of the call"),
        0x8010_0005: Row("SCARD_E_INVALID_TARGET", .serviceUnavailable, "the service's start-up data are missing or wrong"),
        0x8010_0006: Row(
            "SCARD_E_NO_MEMORY", .readerFailure, "no memory, or too many connections to pcscd", "close some programs"),
        0x8010_0007: Row("SCARD_F_WAITED_TOO_LONG", .timeout, "a time limit inside pcscd ran out"),
        0x8010_0008: Row("SCARD_E_INSUFFICIENT_BUFFER", .readerFailure, "the answer is longer than the room for it"),
        0x8010_0009: Row(
            "SCARD_E_UNKNOWN_READER", .readerUnavailable, "no reader has this name", "tapdeck readers lists the names"
        ),
        0x8010_000A: Row("SCARD_E_TIMEOUT", .timeout, "nothing happened in the time allowed"),
        0x8010_000B: Row(
            "SCARD_E_SHARING_VIOLATION", .sharingViolation, "another program holds the card",
            "close the program that uses the reader"
        ),
        0x8010_000C: Row("SCARD_E_NO_SMARTCARD", .tagConnectionLost, "no card is in the reader", "put the card in the reader"),
        0x8010_000D: Row("SCARD_E_UNKNOWN_CARD", .readerFailure, "the card's name is not known to the service"),
        0x8010_000E: Row("SCARD_E_CANT_DISPOSE", .readerFailure, "the reader cannot treat the card as asked"),
        0x8010_000F: Row(
            "SCARD_E_PROTO_MISMATCH", .readerFailure, "the card does not speak the protocol asked for", "allow both T=0 and T=1"
        ),
        0x8010_0010: Row("SCARD_E_NOT_READY", .readerUnavailable, "reader or card is not ready for commands", "try again"),
        0x8010_0011: Row("SCARD_E_INVALID_VALUE", .readerFailure, "an argument has a value that is not allowed"),
        0x8010_0012: Row("SCARD_E_SYSTEM_CANCELLED", .cancelled, "the system ended the call, to shut down"),
        0x8010_0013: Row(
            "SCARD_F_COMM_ERROR", .serviceUnavailable, "the connection to pcscd broke", "sudo systemctl restart pcscd"
        ),
        0x8010_0014: Row("SCARD_F_UNKNOWN_ERROR", .readerFailure, "pcscd failed and does not say why"),
        0x8010_0015: Row("SCARD_E_INVALID_ATR", .readerFailure, "the card's answer to reset is not one"),
        0x8010_0016: Row(
            "SCARD_E_NOT_TRANSACTED", .tagConnectionLost,
            "the exchange broke off: the card was pulled, or it did not answer the reader",
            "put the card back and connect again"
        ),
        0x8010_0017: Row("SCARD_E_READER_UNAVAILABLE", .readerUnavailable, "the reader was unplugged", "plug the reader in"),
        0x8010_0018: Row("SCARD_P_SHUTDOWN", .serviceUnavailable, "pcscd is shutting down"),
        0x8010_0019: Row("SCARD_E_PCI_TOO_SMALL", .readerFailure, "the room for protocol information is too small"),
        0x8010_001A: Row("SCARD_E_READER_UNSUPPORTED", .readerFailure, "the reader's driver does not do what PC/SC asks"),
        0x8010_001B: Row("SCARD_E_DUPLICATE_READER", .readerFailure, "two readers have one name"),
        0x8010_001C: Row("SCARD_E_CARD_UNSUPPORTED", .readerFailure, "the reader cannot use this card"),
        0x8010_001D: Row(
            "SCARD_E_NO_SERVICE", .serviceUnavailable, "pcscd does not run", "sudo systemctl start pcscd.socket"
        ),
        0x8010_001E: Row(
            "SCARD_E_SERVICE_STOPPED", .serviceUnavailable,
            "pcscd has stopped, or speaks another version of the protocol than libpcsclite", "tapdeck doctor"
        ),
        // In pcsc-lite one code has two names: SCARD_E_UNSUPPORTED_FEATURE is the same number.
        0x8010_001F: Row(
            "SCARD_E_UNSUPPORTED_FEATURE", .unsupportedOperation, "the reader or its driver does not do that"
        ),
        0x8010_0020: Row("SCARD_E_ICC_INSTALLATION", .readerFailure, "no provider for the card is installed"),
        0x8010_0021: Row("SCARD_E_ICC_CREATEORDER", .readerFailure, "objects cannot be made in this order"),
        0x8010_0023: Row("SCARD_E_DIR_NOT_FOUND", .readerFailure, "the card has no such directory"),
        0x8010_0024: Row("SCARD_E_FILE_NOT_FOUND", .readerFailure, "the card has no such file"),
        0x8010_0025: Row("SCARD_E_NO_DIR", .readerFailure, "the path is not a directory on the card"),
        0x8010_0026: Row("SCARD_E_NO_FILE", .readerFailure, "the path is not a file on the card"),
        0x8010_0027: Row("SCARD_E_NO_ACCESS", .readerFailure, "access to the file is denied"),
        0x8010_0028: Row("SCARD_E_WRITE_TOO_MANY", .readerFailure, "the card has not enough memory"),
        0x8010_0029: Row("SCARD_E_BAD_SEEK", .readerFailure, "the place in the file could not be set"),
        0x8010_002A: Row("SCARD_E_INVALID_CHV", .readerFailure, "the PIN is wrong"),
        0x8010_002B: Row("SCARD_E_UNKNOWN_RES_MNG", .readerFailure, "a layer below gave a code that is not known"),
        0x8010_002C: Row("SCARD_E_NO_SUCH_CERTIFICATE", .readerFailure, "the certificate is not there"),
        0x8010_002D: Row("SCARD_E_CERTIFICATE_UNAVAILABLE", .readerFailure, "the certificate could not be read"),
        0x8010_002E: Row(
            "SCARD_E_NO_READERS_AVAILABLE", .readerUnavailable, "pcscd runs and knows no reader", "tapdeck doctor"
        ),
        0x8010_002F: Row("SCARD_E_COMM_DATA_LOST", .tagConnectionLost, "octets were lost between reader and card", "try again"),
        0x8010_0030: Row("SCARD_E_NO_KEY_CONTAINER", .readerFailure, "the card has no such key container"),
        0x8010_0031: Row("SCARD_E_SERVER_TOO_BUSY", .serviceUnavailable, "pcscd is too busy", "try again"),
        0x8010_0065: Row(
            "SCARD_W_UNSUPPORTED_CARD", .readerFailure, "reader and card cannot agree how to talk, by the card's answer to reset"
        ),
        0x8010_0066: Row(
            "SCARD_W_UNRESPONSIVE_CARD", .tagConnectionLost, "the card does not answer to a reset",
            "turn the card over, clean it, or hold it still"
        ),
        0x8010_0067: Row("SCARD_W_UNPOWERED_CARD", .tagConnectionLost, "the card has no power", "connect again"),
        0x8010_0068: Row(
            "SCARD_W_RESET_CARD", .tagReset, "another program reset the card; what was selected and proved is lost",
            "reconnect, and start again"
        ),
        0x8010_0069: Row(
            "SCARD_W_REMOVED_CARD", .tagConnectionLost, "the card was taken out", "put the card back and connect again"
        ),
        0x8010_006A: Row(
            "SCARD_W_SECURITY_VIOLATION", .serviceUnavailable, "access was denied; on Linux by a polkit rule", "tapdeck doctor"
        ),
        0x8010_006B: Row("SCARD_W_WRONG_CHV", .readerFailure, "the PIN was wrong"),
        0x8010_006C: Row("SCARD_W_CHV_BLOCKED", .readerFailure, "the PIN is blocked"),
        0x8010_006D: Row("SCARD_W_EOF", .readerFailure, "the end of the card's file was reached"),
        0x8010_006E: Row("SCARD_W_CANCELLED_BY_USER", .cancelled, "the user cancelled"),
        0x8010_006F: Row("SCARD_W_CARD_NOT_AUTHENTICATED", .readerFailure, "no PIN was given to the card"),
    ]
}
