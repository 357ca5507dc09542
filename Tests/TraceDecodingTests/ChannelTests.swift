// SPDX-License-Identifier: MIT

import CardCrypto
import Octets
import SessionSupport
import Testing
import TraceDecoding
import TraceFile

/// A secure channel seen from outside, on the bytes of ICAO 9303-11 appendix D.3 and D.4.
@Suite struct ChannelTests {
    // Kseed of `L898902C<369080619406236`, appendix D.2.
    private static let seed = SecretRecord(kind: .key, name: "bac.seed", octets: hex("239AB9CB282DAF66231DC5A4DF6BFBAE"))
    private static let authentication =
        "008200002872C29C2371CC9BDB65B779B8E8D37B29ECC154AA56A8799FAE2F498F76ED92F25F1448EEA8AD90A728"
    private static let application = ("00A4040C07A0000002471001", "9000")
    private static let challenge = ("0084000008", "4608F919887022129000")
    private static let agreement =
        (authentication, "46B9342A41396CD7386BF5803104D7CEDC122B9132139BAF2EEDC94EE178534F2F2D235D074D74499000")
    private static let select = ("0CA4020C158709016375432908C044F68E08BF8B92D635FF24F800", "990290008E08FA855A5D4C50A8ED9000")
    private static let readHeader = (
        "0CB000000D9701048E08ED6705417E96BA5500", "8709019FF0EC34F9922651990290008E08AD55CC17140B2DED9000"
    )
    private static let readRest = (
        "0CB000040D9701128E082EA28A70F3C7B53500",
        "871901FB9235F4E4037F2327DCC8964F1F9B8C30F42C8E2FFF224A990290008E08C8B2787EAEA07D749000"
    )

    private func decode(_ exchanges: [(String, String)], secrets: [SecretRecord], triesNearMisses: Bool = false) -> (
        rows: [DecodedRow], checked: Int, held: Int
    ) {
        var decoder = TraceDecoder(interfaces: [TraceInterface(.apdu(0))], secrets: SecretStore(secrets))
        decoder.triesNearMisses = triesNearMisses
        var rows: [DecodedRow] = []
        // The application that the files' names belong to is selected first.
        for (direction, octets) in [(RowDirection.sent, Self.application.0), (.received, Self.application.1)] {
            let row = TraceRow(
                time: 0, interface: 0, direction: direction, packetID: 100, dissector: "iso7816", body: hex(octets))
            _ = decoder.push(row)
        }
        for (index, exchange) in exchanges.enumerated() {
            for (direction, octets) in [(RowDirection.sent, exchange.0), (.received, exchange.1)] {
                rows.append(
                    decoder.push(
                        TraceRow(
                            frame: rows.count + 1, time: 0, interface: 0, direction: direction, packetID: UInt64(index + 1),
                            dissector: "iso7816",
                            body: hex(octets))))
            }
        }
        return (rows, decoder.authentication.checked, decoder.authentication.held)
    }

    private static let session = [challenge, agreement, select, readHeader, readRest]

    @Test func withTheSeedTheKeysAreAgreedAndEveryMessageIsOpened() {
        let (rows, checked, held) = decode(Self.session, secrets: [Self.seed])
        #expect(
            rows.map(\.summary) == [
                "GET CHALLENGE", "8 bytes", "EXTERNAL AUTHENTICATE, BAC", "keys agreed", "SELECT EF.COM", "9000",
                "READ BINARY 4 at 0",
                "60145F01", "READ BINARY 18 at 4", "EF.COM whole",
            ])
        // Two of BAC, and one for each protected command and answer.
        #expect(checked == 8)
        #expect(held == 8)
        #expect(rows[4].plain == hex("00A4020C02011E"))
        #expect(rows[7].plain == hex("60145F019000"))
        #expect(rows[9].plain == hex("04303130365F36063034303030305C026175") + hex("9000"))
        #expect(rows[4...].allSatisfy { $0.opening == .opened })
        #expect(rows[4].annotations.map(\.code) == ["held", "held"])
        #expect(rows[4].annotations.map(\.path) == ["secureMessaging.obj.mac", "iso7816.command.le"])
        #expect(rows[9].sessions.map(\.name) == ["BACSession", "Document", "secureMessaging"])
        // SSC and session keys of appendix D.3 and D.4: the counter after the last answer.
        #expect(rows[9].counters.map(\.octets) == [hex("887022120C06C22C")])
    }

    @Test func withTheSessionKeysAloneTheChannelIsOpenedToo() {
        // KSEnc, KSMAC and SSC of appendix D.3, as a recorder keeps them: by the exchange after which they hold.
        let keys = [
            ("secureMessaging.enc", "979EC13B1CBFE9DCD01AB0FED307EAE5"),
            ("secureMessaging.mac", "F1CB1F1FB5ADF208806B89DC579DC1F8"),
            ("secureMessaging.ssc", "887022120C06C226"),
        ].map { SecretRecord(kind: .key, packetID: 2, name: $0.0, octets: hex($0.1)) }
        let (rows, checked, held) = decode(Self.session, secrets: keys)
        #expect(rows[4].summary == "SELECT EF.COM")
        #expect(rows[9].summary == "EF.COM whole")
        #expect(checked == 6)
        #expect(held == 6)
    }

    @Test func withoutKeysMessagesAreSealedAndNothingIsSaidToFail() {
        let (rows, checked, _) = decode(Self.session, secrets: [])
        #expect(checked == 0)
        #expect(rows[4].summary == "SELECT")
        #expect(rows[5].summary == "sealed")
        #expect(rows[6].summary == "READ BINARY at 0")
        #expect(rows[4...].allSatisfy { $0.opening == .sealed && $0.plain == nil })
        #expect(rows.flatMap(\.annotations).allSatisfy { ["sealed", "held"].contains($0.code) && $0.severity == .note })
    }

    @Test func withAnotherDocumentsSeedTheCheckFailsAndSaysWhy() {
        let other = SecretRecord(kind: .key, name: "bac.seed", octets: [UInt8](repeating: 1, count: 16))
        let (rows, checked, held) = decode([Self.challenge, Self.agreement], secrets: [other])
        #expect(checked == 2)
        #expect(held == 0)
        #expect(rows[3].annotations.first?.text.hasPrefix("M_IFD is wrong") == true)
        #expect(rows[3].annotations.first?.blame == .program)
        // Of several seeds the one that fits counts.
        #expect(decode(Self.session, secrets: [other, Self.seed]).held == 8)
    }

    @Test func aChangedOctetOfAnAnswerIsTheCardsFaultAndOfACommandTheProgramsOwn() {
        var answer = Self.session
        answer[3].1.replace("9FF0", with: "9FF1", maxReplacements: 1)
        let row = decode(answer, secrets: [Self.seed]).rows[7]
        #expect(row.opening == .failed)
        #expect(row.annotations.first?.blame == .card)
        #expect(row.annotations.first?.text.hasPrefix("answer's MAC is wrong at SSC 887022120C06C22A: expected ") == true)
        var command = Self.session
        command[3].0.replace("ED67", with: "ED68", maxReplacements: 1)
        let sent = decode(command, secrets: [Self.seed]).rows[6]
        #expect(sent.opening == .failed)
        #expect(sent.annotations.first?.blame == .program)
        #expect(sent.annotations.first?.text.hasPrefix("command MAC is wrong at SSC 887022120C06C229: expected ") == true)
        // What follows still decodes.
        #expect(decode(command, secrets: [Self.seed]).rows[9].summary == "EF.COM whole")
    }

    @Test func aReplayedChallengeIsNoticed() {
        var exchanges = Self.session
        exchanges[0].1 = "00000000000000009000"
        let wrong = decode(exchanges, secrets: [Self.seed]).rows[3].annotations.filter { $0.code == "failed" }
        #expect(
            wrong.map { $0.text.prefix { $0 != ":" } } == [
                "RND.IC is not the challenge of exchange 1", "the card answered to another challenge than that of exchange 1",
            ])
        #expect(wrong.map(\.see) == [1, 1])
    }

    /// ICAO 9303-11 9.8.3 and practice: the counter stands where it was before the refused command; near misses find the others.
    @Test(arguments: [0, 1, 2]) func afterABareStatusWordTheChannelIsFoundAgainAtAnyCounter(_ counted: UInt64) throws {
        let mac = hex("F1CB1F1FB5ADF208806B89DC579DC1F8")
        // The refused READ BINARY of the header stood at SSC ..C229; it leaves 0, 1 or 2 counted.
        let counter = UInt64(0x8870_2212_0C06_C228) + counted + 1
        let header = hex("0CB00004")
        let object = hex("970112")
        let counterOctets = (0..<8).map { UInt8(truncatingIfNeeded: counter >> (56 - 8 * UInt64($0))) }
        let covered = counterOctets + header + hex("80000000") + object
        let code = try RetailMAC.authenticate(covered, key: mac)
        let command = Hex.encode(header + hex("0D") + object + hex("8E08") + code + hex("00"))
        var exchanges = [Self.challenge, Self.agreement, Self.select]
        exchanges.append((Self.readHeader.0, "6982"))
        exchanges.append((command, "6982"))
        let (rows, _, _) = decode(exchanges, secrets: [Self.seed], triesNearMisses: true)
        #expect(rows[7].summary == "6982 access denied")
        #expect(rows[7].annotations.map(\.severity) == [.warn])
        #expect(rows[8].summary == "READ BINARY 18 at 4")
        let failed = rows[8].annotations.filter { $0.code == "failed" }
        #expect(failed.isEmpty == (counted == 0))
        if counted > 0 { #expect(failed.first?.text.hasSuffix("; right for ssc +\(counted)") == true) }
    }

    @Test func aPlainCommandEndsTheChannel() {
        let (rows, _, _) = decode(
            [Self.challenge, Self.agreement, Self.select, ("00A4000C", "9000"), Self.readHeader], secrets: [Self.seed])
        #expect(rows[6].summary == "SELECT MF")
        #expect(rows[8].opening == .sealed)
    }

    @Test func aResetOfTheCardEndsTheChannel() {
        var decoder = TraceDecoder(
            interfaces: [TraceInterface(.apdu(0)), TraceInterface(.reader(0))], secrets: SecretStore([Self.seed]))
        func push(_ exchanges: [(String, String)], from first: UInt64) -> [DecodedRow] {
            exchanges.enumerated().flatMap { index, exchange in
                [(RowDirection.sent, exchange.0), (.received, exchange.1)].map { direction, octets in
                    decoder.push(
                        TraceRow(
                            time: 0, interface: 0, direction: direction, packetID: first + UInt64(index), dissector: "iso7816",
                            body: hex(octets)))
                }
            }
        }
        #expect(push([Self.challenge, Self.agreement, Self.select], from: 1)[4].opening == .opened)
        _ = decoder.push(
            TraceRow(
                time: 0, interface: 1, direction: nil, packetID: 4, dissector: "json",
                body: MetaRow.reader(MetaRow.Reader(name: "reset")).body))
        #expect(push([Self.readHeader], from: 5)[0].opening == .sealed)
    }
}
