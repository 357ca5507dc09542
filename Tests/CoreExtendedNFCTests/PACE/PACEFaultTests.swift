// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Synchronization
import Testing
import VirtualCards

@Suite struct PACEFaultTests {
    private static let can = PassportAccess.can("123456")

    private func read(
        _ transport: any NFCTagTransport, _ access: PassportAccess = can, _ groups: [DataGroupId] = [.com, .dg1],
        _ lines: Lines? = nil
    ) async throws -> PassportModel {
        try await CoreExtendedNFC.readPassport(transport: transport, access: access, dataGroups: groups) { lines?.add($0) }
    }

    /// The octets of the answer to the GENERAL AUTHENTICATE whose command has this object, changed.
    private func tampering(
        _ options: String, at tag: UInt8, _ change: @escaping @Sendable ([UInt8], [UInt8]) -> [UInt8]
    ) throws -> Tampering {
        Tampering(try virtualPassport(options)) { command, answer in
            guard command.count > 8, command[1] == 0x86, command.dropFirst(5).prefix(8).contains(tag) else { return answer }
            return change(command, answer)
        }
    }

    @Test(arguments: ["ecdh-gm-aes128:13", "ecdh-im-aes256:13", "dh-gm-3des:0", "ecdh-cam-aes192:12"])
    func aWrongCANIsRefusedAtTheLastStep(way: String) async throws {
        let error = await #expect(throws: NFCError.self) { try await read(try virtualPassport("pace=\(way)"), .can("123457")) }
        #expect(error == .paceFailed(""))
        #expect(error?.description.hasSuffix("at step 4: the card answered 6300, it does not accept the CAN") == true)
    }

    @Test func aWrongMRZFallsBackToBACAndBothAreNamed() async throws {
        let lines = Lines()
        let error = await #expect(throws: NFCError.self) {
            try await read(
                try virtualPassport("pace=ecdh-gm-aes128:13"), .mrz("L898902C<369080619406230"), [.dg1], lines)
        }
        #expect(error == .bacFailed(""))
        #expect(
            lines.all == [
                "access  EF.CardAccess: PACE-ECDH-GM-AES-CBC-CMAC-128, parameters 13",
                "access  PACE: FAILED at step 4: the card answered 6300, it does not accept the MRZ",
                "access  BAC: FAILED, the card refused the key: 6300 to EXTERNAL AUTHENTICATE",
            ])
    }

    @Test func aChipWithoutPACEWantsTheMRZ() async throws {
        for access in [Self.can, .pin("1234"), .puk("12345678")] {
            await #expect(throws: NFCError.paceFailed("")) { try await read(try virtualPassport(""), access) }
        }
    }

    @Test func aWrongTokenOfTheChipIsNoSuccess() async throws {
        let transport = try tampering("pace=ecdh-gm-aes128:13", at: 0x85) { _, answer in
            var answer = answer
            answer[answer.count - 3] ^= 1
            return answer
        }
        let error = await #expect(throws: NFCError.self) { try await read(transport) }
        #expect(error?.description.contains("the card's token is wrong") == true)
    }

    @Test(arguments: [UInt8(0x81), 0x83])
    func ourOwnKeySentBackIsRefused(tag: UInt8) async throws {
        let transport = try tampering("pace=ecdh-gm-aes128:13", at: tag) { command, _ in
            var mirrored = Array(command.dropFirst(5).dropLast())
            mirrored[2] += 1
            return mirrored + [0x90, 0x00]
        }
        let error = await #expect(throws: NFCError.self) { try await read(transport) }
        #expect(error?.description.contains("the program's own public key back") == true)
    }

    @Test(arguments: [UInt8(0x81), 0x83], ["00", "02", "04", "off"])
    func aKeyThatMustNotBeUsedIsRefused(tag: UInt8, kind: String) async throws {
        let transport = try tampering("pace=ecdh-gm-aes128:13", at: tag) { _, answer in
            guard kind != "off", let octet = UInt8(kind, radix: 16) else {
                var answer = answer
                answer[answer.count - 3] ^= 1
                return answer
            }
            // 00: the point at infinity; 02 and 04: a point cut short.
            let point = kind == "00" ? [octet] : [octet] + answer[5..<37]
            return TLV.encode(0x7C, TLV.encode(UInt32(answer[2]), point)) + [0x90, 0x00]
        }
        let error = await #expect(throws: NFCError.self) { try await read(transport) }
        #expect(error?.description.contains("public key must not be used") == true)
    }

    @Test func aFlippedProofOfTheChipIsNotBelieved() async throws {
        let transport = try tampering("pace=ecdh-cam-aes128:13", at: 0x85) { _, answer in
            var answer = answer
            // Somewhere in the first block of object 8A: the second block changes with it.
            answer[20] ^= 1
            return answer
        }
        let model = try await read(transport)
        #expect(model.securityReport.pace.status == .succeeded)
        #expect(model.securityReport.chipAuthentication.status == .failed)
        #expect(model.securityReport.chipAuthentication.detail?.contains("does not have the private key") == true)
    }

    @Test func aFlippedMACEndsTheRead() async throws {
        let flipped = Mutex(false)
        let transport = Tampering(try virtualPassport("pace=ecdh-gm-aes256:13")) { command, answer in
            // The read of DG1's rest.
            guard command[0] == 0x0C, command[1] == 0xB0, command[3] == 4, answer.count > 100 else { return answer }
            flipped.withLock { $0 = true }
            var answer = answer
            answer[answer.count - 3] ^= 1
            return answer
        }
        let model = try await read(transport, Self.can, [.com, .sod, .dg2])
        #expect(flipped.withLock { $0 })
        #expect(model.dataGroupReadStatus == [.com: .read, .sod: .failed, .dg2: .notRead])
        #expect(model.problems.first?.kind == .channel)
        #expect(model.problems.first?.detail.contains("MAC") == true)
    }

    @Test func aReplayedAnswerIsRefused() async throws {
        let last = Mutex<[UInt8]?>(nil)
        let transport = Tampering(try virtualPassport("pace=ecdh-gm-aes128:13")) { command, answer in
            guard command[0] == 0x0C, command[1] == 0xA4 else { return answer }
            return last.withLock { last in
                defer { last = answer }
                return last ?? answer
            }
        }
        let error = await #expect(throws: NFCError.self) { try await read(transport) }
        #expect(error == .secureMessagingError(""))
    }

    @Test func aStaleCounterEndsTheChipsSession() async throws {
        let card = Tampering(try virtualPassport("pace=ecdh-gm-aes128:13"))
        _ = try await read(card)
        let protected = card.exchanges.last { $0.command[0] == 0x0C }
        let command = try CommandAPDU(bytes: try #require(protected).command)
        #expect(try await card.sendAPDU(command).statusWord == 0x6988)
        #expect(try await card.sendAPDU(command).statusWord == 0x6988)
    }

    @Test func everyStepCanBeRefusedAndIsNamed() async throws {
        for (step, tag) in [(2, UInt8(0x81)), (3, 0x83), (4, 0x85)] {
            let transport = try tampering("pace=ecdh-gm-aes128:13", at: tag) { _, _ in [0x69, 0x88] }
            let error = await #expect(throws: NFCError.self) { try await read(transport) }
            #expect(error?.description.contains("at step \(step): the card answered 6988") == true)
        }
    }

    @Test func noAnswerMakesTheReaderTrap() async throws {
        for tag in [UInt8(0x81), 0x83, 0x85] {
            for garbage in [
                "9000", "7C009000", "7C80", "7C8200", "7C0282009000", "7C0480021122339000", "308000009000", "7C02860090", "00",
            ] {
                let answer = octets(garbage)
                let transport = try tampering("pace=ecdh-gm-aes128:13", at: tag) { _, _ in answer }
                await #expect(throws: (any Error).self) { try await read(transport) }
            }
        }
    }

    // MARK: PIN and PUK

    @Test func aPINHasThreeTriesAndThePUKUnblocksIt() async throws {
        let card = try virtualPassport("pace=ecdh-gm-aes128:13&pin=1234&puk=87654321&dg=1")
        for left in [2, 1] {
            _ = try await card.resetCard()
            let error = await #expect(throws: NFCError.self) { try await read(card, .pin("9999")) }
            #expect(error?.description.contains("\(left) tries are left") == true)
        }
        _ = try await card.resetCard()
        let error = await #expect(throws: NFCError.self) { try await read(card, .pin("9999")) }
        #expect(error?.description.contains("the PIN is blocked") == true)
        _ = try await card.resetCard()
        let blocked = await #expect(throws: NFCError.self) { try await read(card, .pin("1234")) }
        #expect(blocked?.description.contains("63C0 to MSE:Set AT") == true)
        _ = try await card.resetCard()
        #expect(try await read(card, .puk("87654321")).securityReport.pace.status == .succeeded)
        _ = try await card.resetCard()
        #expect(try await read(card, .pin("1234")).securityReport.pace.status == .succeeded)
    }

    @Test func aPINIsTriedOnceHoweverManyWaysThereAre() async throws {
        let card = Tampering(try virtualPassport("pace=ecdh-gm-aes128:13,ecdh-im-aes256:12,dh-gm-3des:0&pin=1234"))
        await #expect(throws: NFCError.paceFailed("")) { try await read(card, .pin("1111")) }
        #expect(card.exchanges.count { $0.command[1] == 0x22 } == 1)
    }

    @Test func passwordsAreNotRendered() {
        #expect("\(PassportAccess.pin("1234"))" == "PIN")
        #expect(!String(reflecting: PassportAccess.mrz(specimenKey)).contains("L898902C"))
    }
}
