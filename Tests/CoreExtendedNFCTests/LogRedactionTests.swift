// SPDX-License-Identifier: MIT

import Foundation
import Octets
import Synchronization
import Testing

@testable import CoreExtendedNFC

@Suite struct LogRedactionTests {
    private func lines(_ command: String, _ answer: String, payloads: Bool) throws -> (sent: String, received: String) {
        var redaction = LogRedaction()
        return redaction.exchange(
            try CommandAPDU(bytes: octets(command)), try ResponseAPDU(bytes: octets(answer)), payloads: payloads)
    }

    @Test func headersLengthsAndStatusWordsStandByDefault() throws {
        let lines = try lines("00A4040C07A0000002471001", "6F0290AA9000", payloads: false)
        #expect(lines.sent == "> 00A4040C Lc 7")
        #expect(lines.received == "< 4 bytes 9000")
    }

    @Test func payloadsStandWhenAskedFor() throws {
        let lines = try lines("00B0000004", "60145F019000", payloads: true)
        #expect(lines.sent == "> 00B00000 Le 4")
        #expect(lines.received == "< 60145F01 9000")
    }

    /// VERIFY, CHANGE REFERENCE DATA, RESET RETRY COUNTER, GET CHALLENGE, the AUTHENTICATE commands, key loading, and the same inside
    /// the commands of readers.
    @Test(arguments: [
        "002000810431323334", "0024008108AABBCCDDAABBCCDD", "002C008108AABBCCDDAABBCCDD", "0084000008",
        "0082000028"
            + String(repeating: "AB", count: 40) + "28", "0088000008AABBCCDDAABBCCDD00", "10860000027C0000", "901A0000010000",
        "90AA0000010000",
        "9071000002000000", "FF82000006FFFFFFFFFFFF", "FF00000007D4421BAABBCCDD",
        "FF00000008D440011BAABBCCDD", "FFC200010795051BAABBCCDD00", "FFD6002B04AABBCCDD", "80E2000002AABB",
        "80D8000002AABB",
    ])
    func secretsNeverStandInALog(command: String) throws {
        let lines = try lines(command, "DEADBEEFDEADBEEF9000", payloads: true)
        #expect(!lines.sent.contains("AABB") && !lines.sent.contains("ABAB") && !lines.sent.contains("31323334"))
        #expect(lines.received == "< <redacted 8 bytes> 9000")
        if try CommandAPDU(bytes: octets(command)).data != nil { #expect(lines.sent.contains("<redacted ")) }
    }

    @Test func framesOfAnAuthenticationThatGoesOnAreSecretToo() throws {
        var redaction = LogRedaction()
        _ = redaction.exchange(
            try CommandAPDU(bytes: octets("90AA0000010000")), try ResponseAPDU(bytes: octets("AABBCCDD91AF")), payloads: true)
        let next = redaction.exchange(
            try CommandAPDU(bytes: octets("90AF000004CAFECAFE00")), try ResponseAPDU(bytes: octets("CAFECAFE9100")),
            payloads: true)
        #expect(next.sent == "> 90AF0000 <redacted 4 bytes> Le 256")
        #expect(next.received == "< <redacted 4 bytes> 9100")
        let other = redaction.exchange(
            try CommandAPDU(bytes: octets("90AF000000")), try ResponseAPDU(bytes: octets("CAFE9100")), payloads: true)
        #expect(other.received == "< CAFE 9100")
    }

    @Test func messagesUnderSecureMessagingShowHeaderAndStatusOnly() throws {
        for command in ["0CB000000D9701048E08ED6705417E96BA5500", "8482000010AABBCCDDAABBCCDDAABBCCDDAABBCCDD", "6084000008"] {
            let lines = try lines(command, "8709019FF0EC34F9922651990290008E08AD55CC17140B2DED9000", payloads: true)
            #expect(lines.sent.count == 10)
            #expect(lines.received == "< 9000")
        }
    }

    @Test func passwordsOfRawFramesAreRedacted() {
        var redaction = LogRedaction()
        #expect(
            redaction.frame([0x1B, 1, 2, 3, 4], [0x80, 0x80], payloads: true) == ("> <redacted 5 bytes>", "< <redacted 2 bytes>"))
        #expect(redaction.frame([0x1A, 0x00], [0xAF, 1, 2], payloads: true).received == "< <redacted 3 bytes>")
        #expect(redaction.frame([0xAF, 9, 9], [0x00, 8], payloads: true).sent == "> <redacted 3 bytes>")
        #expect(redaction.frame([0xAF, 9, 9], [0x00, 8], payloads: true).sent == "> AF0909")
        #expect(redaction.frame([0xA2, 0x2B, 1, 2, 3, 4], [0x0A], payloads: true).sent == "> <redacted 6 bytes>")
        #expect(redaction.frame([0x30, 0x04], [1, 2], payloads: true) == ("> 3004", "< 0102"))
        #expect(redaction.frame([0x30, 0x04], [1], payloads: false) == ("> 2 bytes", "< 1 byte"))
    }
}

/// The logger is one for the whole process, so its tests come one after another.
@Suite(.serialized) struct LoggerTests {
    final class Collector: NFCLogger {
        let lines = Mutex<[String]>([])
        func log(_ level: NFCLogLevel, _ message: String, source: String) {
            lines.withLock { $0.append("\(level.rawValue) \(source) \(message)") }
        }
    }

    @Test func aPassportReadLogsNoSecretWhateverIsAskedFor() async throws {
        let collector = Collector()
        NFCLogConfiguration.logger = collector
        NFCLogConfiguration.logPayloads = true
        defer {
            NFCLogConfiguration.logger = nil
            NFCLogConfiguration.logPayloads = false
        }
        _ = try await withAppendixD {
            try await CoreExtendedNFC.readPassport(
                transport: SecuredChip(files: SpecimenFiles.all), mrzKey: AppendixD.mrzKey, dataGroups: [.com, .dg1])
        }
        let text = collector.lines.withLock { $0.joined(separator: "\n") }
        #expect(text.contains("DEBUG Passport > 00A4040C A0000002471001"))
        #expect(text.contains("DEBUG Passport < <redacted 40 bytes> 9000"))
        #expect(text.contains("DEBUG Passport > 0CB00000\n"))
        for secret in [AppendixD.challenge, String(AppendixD.authenticate.dropFirst(10)), "60145F01", "L898902C"] {
            #expect(!text.contains(secret))
        }
    }
}
