// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Testing
import VirtualCards

/// What people met with real documents, each reproduced with a quirk of the virtual passport.
@Suite struct FieldReportTests {
    private func read(
        _ transport: any NFCTagTransport, _ groups: [DataGroupId] = [.com, .sod, .dg1, .dg2], lines: Lines? = nil
    ) async throws -> PassportModel {
        try await CoreExtendedNFC.readPassport(transport: transport, mrzKey: specimenKey, dataGroups: groups) { lines?.add($0) }
    }

    /// E1, a bare 6700 to a long read: the chip keeps its session and its counter from before the command.
    @Test(arguments: ["", "&pace=ecdh-gm-aes128:13"])
    func aBare6700IsFollowedByASmallerRead(options: String) async throws {
        let card = Tampering(try virtualPassport("quirk=refuse-le&chunk=150\(options)"))
        let model = try await read(card)
        #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
        #expect(model.problems.isEmpty)
        // Once, and remembered for the files after it.
        #expect(card.exchanges.count { $0.answer == [0x67, 0x00] && $0.command[0] == 0x0C } == 1)
    }

    /// E1: a second bare status word in a row says that the session is gone. The chip is opened again, once, and read in pieces that it
    /// takes: where it refused half of the first length too, and where it lost its session at the first refusal.
    @Test(arguments: [
        ("quirk=refuse-le&chunk=60", "BAC: keys agreed, secure messaging with 3DES", 231, 57),
        ("quirk=refuse-le&chunk=60&pace=ecdh-gm-aes128:13", "PACE: keys agreed with the MRZ", 223, 55),
        ("quirk=refuse-le,lose-session&chunk=150", "BAC: keys agreed, secure messaging with 3DES", 231, 115),
        ("quirk=refuse-le,lose-session&chunk=150&pace=dh-im-aes128:2", "PACE: keys agreed with the MRZ", 223, 111),
    ])
    func aSessionLostOverALengthIsOpenedAgainOnce(options: String, access: String, refused: Int, chunk: Int) async throws {
        let card = Tampering(try virtualPassport(options))
        let lines = Lines()
        let model = try await read(card, lines: lines)
        #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
        #expect(model.dataGroupReadStatus.count == 4)
        #expect(model.problems.isEmpty)
        #expect(model.securityReport.passiveAuthentication.status == .fallback)
        let failed = try #require(lines.all.firstIndex(of: "read  EF.SOD, FAILED, 6700 to \(refused) bytes ended the session"))
        let opened = try #require(lines.all.firstIndex(of: "access  chip: opened again, for \(chunk) bytes at a time"))
        #expect(lines.all[failed..<opened].contains("access  \(access)"))
        #expect(lines.all.count { $0 == "access  \(access)" } == 2)
        #expect(lines.all.last == "result  4 of 4 files read")
        // What was learnt holds for the files after it: nothing is refused any more.
        let first = try #require(card.exchanges.lastIndex { $0.answer == [0x67, 0x00] || $0.answer == [0x69, 0x88] })
        #expect(card.exchanges[first...].count > 20)
    }

    /// A chip that goes on refusing is not opened a third time; what was read stays, and the rest was not read.
    @Test func aSessionIsNotOpenedAThirdTime() async throws {
        let lines = Lines()
        let model = try await read(try virtualPassport("quirk=refuse-le&chunk=18"), [.com, .sod, .dg2], lines: lines)
        #expect(model.dataGroupReadStatus == [.com: .read, .sod: .failed, .dg2: .notRead])
        #expect(lines.all.contains { $0.hasPrefix("read  EF.SOD, FAILED at 4 of ") })
        #expect(lines.all.count { $0.hasPrefix("access  BAC: ") } == 2)
        #expect(model.problems.map(\.kind) == [.channel])
        #expect(model.problems.first?.side == .card)
        #expect(model.problems.first?.detail == "EF.SOD: 6700 without secure messaging")
        await #expect(throws: NFCError.secureMessagingError("")) {
            try await read(try virtualPassport("quirk=refuse-le&chunk=5"), [.com, .dg1])
        }
    }

    /// A counted password is not spent on a second opening.
    @Test func aPINIsTypedOnce() async throws {
        let model = try await CoreExtendedNFC.readPassport(
            transport: try virtualPassport("quirk=refuse-le&chunk=60&pace=ecdh-gm-aes128:13&pin=271828"), access: .pin("271828"),
            dataGroups: [.com, .sod])
        #expect(model.dataGroupReadStatus == [.com: .read, .sod: .failed])
    }

    /// Where the answer to reset says nothing of lengths, EF.ATR/INFO does: pieces as long as the answers that it allows.
    @Test(arguments: ["", "&pace=ecdh-gm-aes128:13"])
    func lengthsComeFromTheFileOfAttributes(options: String) async throws {
        let select = octets("00A4020C022F01")
        let card = Tampering(try virtualPassport("photo=20000&quirk=atr-info\(options)"))
        #expect(try await read(card, [.dg1, .dg2]).dataGroupReadStatus == [.dg1: .read, .dg2: .read])
        #expect(card.exchanges.contains { $0.command == select })
        let longest = card.exchanges.map(\.answer.count).max() ?? 0
        #expect((900...1_000).contains(longest))
        // Not read where nothing long is wanted, and not where the answer to reset tells already.
        for (options, groups) in [("quirk=atr-info", [DataGroupId.com, .sod, .dg1]), ("photo=20000", [.dg1, .dg2])] {
            let other = Tampering(try virtualPassport(options))
            _ = try await read(other, groups)
            #expect(!other.exchanges.contains { $0.command == select })
        }
    }

    /// The same chip without the file, or with one that cannot be read: short lengths.
    @Test(arguments: ["6A82", "6982", "9000", "610000"])
    func withoutTheFileOfAttributesLengthsAreShort(answer: String) async throws {
        let card = Tampering(try virtualPassport("photo=20000&quirk=atr-info")) { command, honest in
            if command == octets("00A4020C022F01") { return answer.count == 4 ? octets(answer) : honest }
            // Attributes that are no data objects.
            return command == octets("00B0000000") ? octets(answer == "610000" ? "4705009000" : "9000") : honest
        }
        #expect(try await read(card, [.dg1, .dg2]).dataGroupReadStatus == [.dg1: .read, .dg2: .read])
        #expect(card.exchanges.allSatisfy { $0.answer.count <= 258 })
    }

    @Test(arguments: ["", "&pace=ecdh-gm-aes128:13", "&photo=40000"])
    func a6CxxIsFollowedByAReadOfThatLength(options: String) async throws {
        let model = try await read(try virtualPassport("quirk=6C&chunk=100\(options)"))
        #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
    }

    /// E3 and E5: Le 00 past the end of a file of 25 bytes gave a plain 6B00, and the session was lost: files are never read past their end.
    @Test(arguments: ["", "&pace=dh-im-aes128:1", "&photo=70000"])
    func nothingIsReadPastTheEndOfAFile(options: String) async throws {
        let model = try await read(try virtualPassport("strict\(options)"))
        #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
    }

    @Test func aChipThatDropsItsChannelLeavesTheRestUnread() async throws {
        let lines = Lines()
        let model = try await read(try virtualPassport("quirk=drop&dg=1,2,3"), [.com, .dg1, .dg3, .dg4], lines: lines)
        #expect(model.dataGroupReadStatus[.dg1] == .read)
        #expect(model.dataGroupReadStatus[.dg3] == .unavailable)
        #expect(lines.all.contains("read  DG3, refused, 6982"))
        #expect(lines.all.last == "result  2 of 4 files read")
    }

    /// E7: PACE-ECDH-IM-AES-256 with parameters 18; MSE:Set AT has no Le.
    @Test func integratedMappingOnP521IsNamedAndDone() async throws {
        let card = Tampering(try virtualPassport("pace=ecdh-im-aes256:18"))
        let lines = Lines()
        #expect(try await read(card, [.dg1], lines: lines).securityReport.pace.status == .succeeded)
        #expect(lines.all.first == "access  EF.CardAccess: PACE-ECDH-IM-AES-CBC-CMAC-256, parameters 18")
        #expect(card.exchanges.contains { $0.command == octets("0022C1A40F800A04007F00070202040404830101") })
        #expect(card.exchanges.contains { $0.command == octets("10860000027C0000") })
    }

    /// E9: the form of SELECT that one country wants is refused by another.
    @Test func aMasterFileThatCannotBeSelectedIsNoHindrance() async throws {
        let model = try await read(try virtualPassport("pace=ecdh-gm-aes128:13&quirk=no-mf"))
        #expect(model.securityReport.pace.status == .succeeded)
    }

    /// E13: EF.CardAccess by its short identifier, where SELECT is refused with anything but "not found".
    @Test func cardAccessIsReadByItsShortIdentifierWhenItCannotBeSelected() async throws {
        let card = Tampering(try virtualPassport("pace=ecdh-gm-aes128:13")) { command, answer in
            command == octets("00A4020C02011C") ? [0x6A, 0x86] : answer
        }
        #expect(try await read(card, [.dg1]).securityReport.pace.status == .succeeded)
        #expect(card.exchanges.contains { $0.command == octets("00B09C0004") })
    }

    /// E11: not brainpoolP512r1.
    @Test func parameters14AreBrainpoolP320r1() async throws {
        let model = try await read(try virtualPassport("pace=ecdh-gm-aes128:14"), [.dg1])
        #expect(model.securityReport.pace.detail == "PACE-ECDH-GM-AES-CBC-CMAC-128, parameters 14")
    }

    /// E13.
    @Test(arguments: ["ecdh-gm-aes256:13", "ecdh-gm-aes192:13", "ecdh-gm-3des:13", "dh-gm-aes256:1"])
    func aNonceOf32BytesIsTaken(way: String) async throws {
        let card = Tampering(try virtualPassport("pace=\(way)&quirk=nonce-32"))
        #expect(try await read(card, [.dg1]).securityReport.pace.status == .succeeded)
        #expect(card.exchanges.contains { $0.command == octets("10860000027C0000") && $0.answer.count == 38 })
    }

    /// E15: after access nothing goes in plain, and the application is not left.
    @Test(arguments: ["", "pace=ecdh-cam-aes128:13&ca=ecdh-aes128:13&aa=rsa"])
    func nothingGoesInPlainOnceTheChannelIsOpen(options: String) async throws {
        let card = Tampering(try virtualPassport(options))
        _ = try await read(card)
        let first = try #require(card.exchanges.firstIndex { $0.command[0] == 0x0C })
        #expect(card.exchanges[first...].allSatisfy { $0.command[0] & 0x0C == 0x0C })
    }

    /// Newer German passports answer 6A88 to EXTERNAL AUTHENTICATE with Le 00.
    @Test func externalAuthenticateAsksForFortyBytes() async throws {
        #expect(try await read(try virtualPassport("quirk=exact-le"), [.dg1]).securityReport.bac.status == .succeeded)
    }

    @Test(arguments: ["needs-84", "no-84"])
    func theParametersAreNamedOrNotAsTheChipWants(quirk: String) async throws {
        // Two ways with one protocol: the parameters have to be named, unless the chip minds.
        for ways in ["ecdh-gm-aes128:13", "ecdh-gm-aes128:12,ecdh-gm-aes128:13"] {
            let card = Tampering(try virtualPassport("pace=\(ways)&quirk=\(quirk)"))
            let model = try await read(card, [.dg1])
            #expect(model.securityReport.pace.status == .succeeded)
            let selections = card.exchanges.filter { $0.command[1] == 0x22 }
            let isSecondTry = selections.count == 2
            #expect(isSecondTry == (ways.contains(",") == (quirk == "no-84")))
            #expect((model.securityReport.pace.detail?.contains("MSE:Set AT") == true) == isSecondTry)
        }
    }

    @Test func severalParametersOfOneProtocolAreNamed() async throws {
        let card = Tampering(try virtualPassport("pace=ecdh-gm-aes128:12,ecdh-gm-aes128:13"))
        _ = try await read(card, [.dg1])
        #expect(card.exchanges.contains { $0.command == octets("0022C1A412800A04007F0007020204020283010184010C") })
    }

    /// PACE that fails whatever one does, then a chip that wants a reset before anything else.
    @Test(arguments: ["never-pace", "never-pace,sulks"])
    func afterAFailedPACETheCardIsResetAndBACFollows(quirks: String) async throws {
        let lines = Lines()
        let model = try await read(
            try virtualPassport("pace=ecdh-gm-aes256:14&quirk=\(quirks)"), [.com, .dg1], lines: lines)
        #expect(model.securityReport.pace.status == .fallback)
        #expect(model.securityReport.bac.status == .succeeded)
        #expect(
            lines.all.prefix(3) == [
                "access  EF.CardAccess: PACE-ECDH-GM-AES-CBC-CMAC-256, parameters 14",
                "access  PACE: FAILED at step 4: the card answered 6300, it does not accept the MRZ",
                "access  BAC: keys agreed; PACE was offered and not used",
            ])
    }

    @Test func aChipWithPACEAloneIsReadAndSaysSoWhenPACEFails() async throws {
        #expect(
            try await read(try virtualPassport("pace=ecdh-gm-aes128:13&no-bac"), [.dg1]).securityReport.bac.status == .skipped)
        let error = await #expect(throws: NFCError.self) {
            try await read(try virtualPassport("pace=ecdh-gm-aes128:13&no-bac&quirk=never-pace"), [.dg1])
        }
        #expect(error?.description == "the card refused BAC: 6A88 to GET CHALLENGE")
    }

    /// DH public values with leading zeros, as the chip sends one in 256: runs go on until both of its keys had one.
    @Test func paddedPublicValuesAreTaken() async throws {
        let card = Tampering(try virtualPassport("pace=dh-gm-aes128:0&quirk=pad-dh&dg=1"))
        var padded: Set<UInt8> = []
        var runs = 0
        // 1,500 runs without one of either are less likely than one in 100; both sides' numbers follow from seeds.
        while padded.count < 2, runs < 1_500 {
            _ = try await card.resetCard()
            card.forget()
            let model = try await CardEnvironment.with(CardEnvironment(random: SeededRandom(seed: runs))) {
                try await CoreExtendedNFC.readPassport(transport: card, access: .can("123456"), dataGroups: [.com])
            }
            #expect(model.securityReport.pace.status == .succeeded, "run \(runs)")
            runs += 1
            for exchange in card.exchanges where exchange.command[1] == 0x86 {
                let object = try TLV.first(in: exchange.answer.dropLast(2)[...]).children()[0]
                guard [0x82, 0x84].contains(object.tag) else { continue }
                #expect(object.value.count == 128)
                if object.value.first == 0 { padded.insert(UInt8(object.tag)) }
            }
        }
        #expect(padded == [0x82, 0x84], "no leading zero in \(runs) runs")
    }

    @Test func aRefusedChipAuthenticationLeavesTheChannelAndIsNamed() async throws {
        for way in ["ecdh-aes128:13", "ecdh-3des:13"] {
            let model = try await read(try virtualPassport("ca=\(way)&quirk=no-ca"))
            #expect(model.securityReport.chipAuthentication.status == .failed)
            #expect(model.securityReport.chipAuthentication.detail?.contains("6A80") == true)
            #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
        }
    }

    @Test func aSlowChipIsWaitedFor() async throws {
        #expect(try await read(try virtualPassport("delay=5"), [.dg1]).dataGroupReadStatus[.dg1] == .read)
    }

    /// 61xx from a transport below, in plain and in the channel.
    @Test(arguments: [1, 2, 7, 9, 12, 14])
    func answersInPartsAreJoined(number: Int) async throws {
        let model = try await read(try virtualPassport("pace=ecdh-gm-aes128:13&fault=61%40\(number)"), [.com, .dg1])
        #expect(model.securityReport.pace.status == .succeeded)
        #expect(model.dataGroupReadStatus == [.com: .read, .dg1: .read])
    }

    /// A file of more than 64 KB: odd instruction, offsets of three octets, commands of extended length.
    @Test(arguments: ["photo=100000", "photo=100000&pace=ecdh-gm-aes128:13", "photo=100000&chunk=200"])
    func aLargeImageIsReadInLargePieces(options: String) async throws {
        let card = Tampering(try virtualPassport(options))
        let model = try await read(card, [.dg1, .dg2])
        #expect(model.dataGroupReadStatus == [.dg1: .read, .dg2: .read])
        #expect((model.faceImageData?.count ?? 0) >= 100_000)
        #expect(card.exchanges.contains { $0.command[1] == 0xB1 })
        if !options.contains("chunk") { #expect(card.exchanges.count < 100) }
    }
}
