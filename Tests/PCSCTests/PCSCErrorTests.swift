// SPDX-License-Identifier: MIT

import PCSC
import TagTransport
import Testing

@Suite struct PCSCErrorTests {
    // The codes of pcsclite.h 1.9.9.
    @Test(
        arguments: [
            (0x8010_0002, "SCARD_E_CANCELLED", TransportError.Case.cancelled),
            (0x8010_0009, "SCARD_E_UNKNOWN_READER", .readerUnavailable),
            (0x8010_000A, "SCARD_E_TIMEOUT", .timeout),
            (0x8010_000B, "SCARD_E_SHARING_VIOLATION", .sharingViolation),
            (0x8010_000C, "SCARD_E_NO_SMARTCARD", .tagConnectionLost),
            (0x8010_0016, "SCARD_E_NOT_TRANSACTED", .tagConnectionLost),
            (0x8010_0017, "SCARD_E_READER_UNAVAILABLE", .readerUnavailable),
            (0x8010_001D, "SCARD_E_NO_SERVICE", .serviceUnavailable),
            (0x8010_001F, "SCARD_E_UNSUPPORTED_FEATURE", .unsupportedOperation),
            (0x8010_002E, "SCARD_E_NO_READERS_AVAILABLE", .readerUnavailable),
            (0x8010_0066, "SCARD_W_UNRESPONSIVE_CARD", .tagConnectionLost),
            (0x8010_0068, "SCARD_W_RESET_CARD", .tagReset),
            (0x8010_0069, "SCARD_W_REMOVED_CARD", .tagConnectionLost),
        ] as [(UInt32, String, TransportError.Case)])
    func aCodeHasItsNameAndItsCase(_ code: UInt32, _ name: String, _ transportCase: TransportError.Case) {
        let error = PCSCError(code: code)
        #expect(error.name == name)
        #expect(error.transportError == TransportError(transportCase, code: code))
    }

    @Test func everyCodeOfTheHeaderIsKnown() {
        // 01 to 31 without 22, which pcsc-lite left unused, and 65 to 6F.
        let codes = (0x01...0x31).filter { $0 != 0x22 } + Array(0x65...0x6F)
        #expect(PCSCError.all.map(\.code) == codes.map { 0x8010_0000 + UInt32($0) })
        for error in PCSCError.all {
            #expect(error.name.hasPrefix("SCARD_"))
            #expect(!error.meaning.isEmpty && !error.meaning.hasSuffix("."))
        }
    }

    @Test func anUnknownCodeKeepsItsDigits() {
        let error = PCSCError(code: 0x0000_0606)
        #expect(error.name == "00000606")
        #expect(error.transportCase == .readerFailure)
    }
}
