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

    /// A bare 6700 to a long read: the chip keeps its session and its counter from before the command.
    @Test(arguments: ["", "&pace=ecdh-gm-aes128:13"])
    func aBare6700IsFollowedByASmallerRead(options: String) async throws {
        let card = Tampering(try virtualPassport("quirk=refuse-le&chunk=150\(options)"))
        let model = try await read(card)
        #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
        #expect(model.problems.isEmpty)
        // Once, and remembered for the files after it.
        #expect(card.exchanges.count { $0.answer == [0x67, 0x00] && $0.command[0] == 0x0C } == 1)
    }

    /// The second bare status word in a row says that the session is gone.
    @Test func twoBareStatusWordsEndTheRead() async throws {
        let lines = Lines()
        let model = try await read(try virtualPassport("quirk=refuse-le&chunk=60"), [.com, .sod, .dg2], lines: lines)
        #expect(model.dataGroupReadStatus == [.com: .read, .sod: .failed, .dg2: .notRead])
        #expect(lines.all.contains { $0.hasPrefix("read  EF.SOD, FAILED at 4 of ") })
        #expect(model.problems.first?.kind == .channel)
        #expect(model.problems.first?.side == .card)
    }

    @Test(arguments: ["", "&pace=ecdh-gm-aes128:13", "&photo=40000"])
    func a6CxxIsFollowedByAReadOfThatLength(options: String) async throws {
        let model = try await read(try virtualPassport("quirk=6C&chunk=100\(options)"))
        #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
    }

    /// Le 00 past the end of a file of 25 bytes gave a plain 6B00, and the session was lost: files are never read past their end.
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

    /// PACE-ECDH-IM-AES-256 with parameters 18; MSE:Set AT has no Le.
    @Test func integratedMappingOnP521IsNamedAndDone() async throws {
        let card = Tampering(try virtualPassport("pace=ecdh-im-aes256:18"))
        let lines = Lines()
        #expect(try await read(card, [.dg1], lines: lines).securityReport.pace.status == .succeeded)
        #expect(lines.all.first == "access  EF.CardAccess: PACE-ECDH-IM-AES-CBC-CMAC-256, parameters 18")
        #expect(card.exchanges.contains { $0.command == octets("0022C1A40F800A04007F00070202040404830101") })
        #expect(card.exchanges.contains { $0.command == octets("10860000027C0000") })
    }

    @Test func aMasterFileThatCannotBeSelectedIsNoHindrance() async throws {
        let model = try await read(try virtualPassport("pace=ecdh-gm-aes128:13&quirk=no-mf"))
        #expect(model.securityReport.pace.status == .succeeded)
    }

    /// EF.CardAccess by its short identifier, where SELECT is refused with anything but "not found".
    @Test func cardAccessIsReadByItsShortIdentifierWhenItCannotBeSelected() async throws {
        let card = Tampering(try virtualPassport("pace=ecdh-gm-aes128:13")) { command, answer in
            command == octets("00A4020C02011C") ? [0x6A, 0x86] : answer
        }
        #expect(try await read(card, [.dg1]).securityReport.pace.status == .succeeded)
        #expect(card.exchanges.contains { $0.command == octets("00B09C0004") })
    }

    @Test func parameters14AreBrainpoolP320r1() async throws {
        let model = try await read(try virtualPassport("pace=ecdh-gm-aes128:14"), [.dg1])
        #expect(model.securityReport.pace.detail == "PACE-ECDH-GM-AES-CBC-CMAC-128, parameters 14")
    }

    @Test(arguments: ["ecdh-gm-aes256:13", "ecdh-gm-aes192:13", "ecdh-gm-3des:13", "dh-gm-aes256:1"])
    func aNonceOf32BytesIsTaken(way: String) async throws {
        let card = Tampering(try virtualPassport("pace=\(way)&quirk=nonce-32"))
        #expect(try await read(card, [.dg1]).securityReport.pace.status == .succeeded)
        #expect(card.exchanges.contains { $0.command == octets("10860000027C0000") && $0.answer.count == 38 })
    }

    /// After access nothing goes in plain, and the application is not left.
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

    /// DH public values with leading zeros: sent by the chip, met in one run of 256.
    @Test func paddedPublicValuesAreTaken() async throws {
        let card = try virtualPassport("pace=dh-gm-aes128:0&quirk=pad-dh&dg=1")
        for _ in 0..<8 {
            _ = try await card.resetCard()
            #expect(try await read(card, [.dg1]).securityReport.pace.status == .succeeded)
        }
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
