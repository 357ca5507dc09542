// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Foundation
import Testing
import VirtualCards

@Suite struct Type4Tests {
    private static let desfire = CardInfo(type: .mifareDesfireEV2, uid: Data())
    private static let ntag = CardInfo(type: .ntag424DNA, uid: Data())

    private func transport(_ reference: String) throws -> VirtualCardTransport {
        VirtualCardTransport(try VirtualCardCatalog.make(VirtualCardSpecification(reference: reference)))
    }

    // T4T 2.0, the example of a container.
    @Test func aContainerIsParsed() throws {
        let container = try Type4CC(bytes: octets("000F20003B00340406E10400FE0000"))
        #expect(container.length == 15 && container.majorVersion == 2 && container.maxReadLength == 0x3B)
        #expect(container.maxWriteLength == 0x34 && container.fileID == 0xE104 && container.fileSize == 0xFE)
        #expect(container.capacity == 0xFC && container.writeAccess == 0 && !container.isExtended)
        let extended = try Type4CC(bytes: octets("001130003B00340608E1040001000000FF"))
        #expect(
            extended.isExtended && extended.fileSize == 0x10000 && extended.capacity == 0xFFFC && extended.writeAccess == 0xFF)
        for hex in [
            "", "000F20003B00340406E10400FE00", "000E20003B00340406E10400FE0000", "000F40003B00340406E10400FE0000",
            "000F20000000340406E10400FE0000", "000F20003B00340506E10400FE0000",
        ] {
            #expect(throws: NFCError.self) { try Type4CC(bytes: octets(hex)) }
        }
    }

    @Test(arguments: [("desfire", desfire), ("ntag424?blank", ntag)])
    func aMessageIsWrittenReadAndTakenAway(reference: String, info: CardInfo) async throws {
        let transport = try transport(reference)
        #expect(try await CoreExtendedNFC.readType4CapabilityContainer(transport: transport).fileID == 0xE104)
        #expect(try await CoreExtendedNFC.readNDEF(info: info, transport: transport).records.isEmpty)
        for length in [0, 1, 50, 100, 245] {
            let message = NDEFMessage(records: [NDEFRecord(typeNameFormat: .unknown, payload: Data(repeating: 5, count: length))])
            try await CoreExtendedNFC.writeNDEF(message, info: info, transport: transport)
            #expect(try await CoreExtendedNFC.readNDEF(info: info, transport: transport) == message)
        }
        await #expect(throws: NFCError.unsupportedOperation("")) {
            try await CoreExtendedNFC.writeNDEF(
                .text(String(repeating: "x", count: 300)), info: info, transport: transport)
        }
        try await CoreExtendedNFC.formatNDEF(info: info, transport: transport)
        #expect(try await CoreExtendedNFC.readNDEF(info: info, transport: transport).records.isEmpty)
    }

    @Test func anEmptyDESFireBecomesATag() async throws {
        for generation in ["ev1", "ev2", "ev3"] {
            let transport = try transport("desfire?generation=\(generation)&layout=%23")
            await #expect(throws: NFCError.applicationNotFound(aid: data("D2760000850101"))) {
                try await CoreExtendedNFC.readNDEF(info: Self.desfire, transport: transport)
            }
            try await CoreExtendedNFC.formatNDEF(info: Self.desfire, transport: transport)
            try await CoreExtendedNFC.writeNDEF(.uri("https://example.com"), info: Self.desfire, transport: transport)
            #expect(try await CoreExtendedNFC.readNDEF(info: Self.desfire, transport: transport) == .uri("https://example.com"))
        }
        let old = try transport("desfire?generation=d40&layout=%23")
        await #expect(throws: NFCError.unsupportedOperation("")) {
            try await CoreExtendedNFC.formatNDEF(info: Self.desfire, transport: old)
        }
    }

    // Longer than one command takes: 58 and 255 bytes with the length.
    @Test(arguments: [("desfire", desfire, 200), ("ntag424?blank", ntag, 247)], [false, true])
    func aTornWriteLeavesTheOldMessageNoneOrTheNewOne(_ card: (String, CardInfo, Int), takesEffect: Bool) async throws {
        let (reference, info, length) = card
        let old = NDEFMessage.text("old")
        let new = NDEFMessage.text(String(repeating: "n", count: length))
        var seen: Set<Int> = []
        for step in 1...60 {
            let transport = try transport(reference)
            try await CoreExtendedNFC.writeNDEF(old, info: info, transport: transport)
            var isDone = true
            do {
                try await CoreExtendedNFC.writeNDEF(
                    new, info: info, transport: Vanishing(transport, at: step, takesEffect: takesEffect))
            } catch NFCError.tagConnectionLost {
                isDone = false
            }
            let read = try await CoreExtendedNFC.readNDEF(info: info, transport: VirtualCardTransport(transport.card))
            let known = [old, NDEFMessage(records: []), new]
            let index = try #require(known.firstIndex(of: read), "step \(step): \(read)")
            seen.insert(index)
            if isDone {
                #expect(read == new)
                break
            }
        }
        #expect(seen == [0, 1, 2])
    }

    @Test(arguments: [("desfire", desfire), ("ntag424?blank", ntag)], [false, true])
    func aTornWriteOfOneCommandLeavesTheOldMessageOrTheNewOne(_ card: (String, CardInfo), takesEffect: Bool) async throws {
        let (reference, info) = card
        let old = NDEFMessage.text(String(repeating: "old ", count: 50))
        let new = NDEFMessage.uri("https://example.com/new")
        var seen: Set<Int> = []
        for step in 1...20 {
            let transport = try transport(reference)
            try await CoreExtendedNFC.writeNDEF(old, info: info, transport: transport)
            var isDone = true
            do {
                try await CoreExtendedNFC.writeNDEF(
                    new, info: info, transport: Vanishing(transport, at: step, takesEffect: takesEffect))
            } catch NFCError.tagConnectionLost {
                isDone = false
            }
            let read = try await CoreExtendedNFC.readNDEF(info: info, transport: VirtualCardTransport(transport.card))
            seen.insert(try #require([old, new].firstIndex(of: read), "step \(step): \(read)"))
            if isDone {
                #expect(read == new)
                break
            }
        }
        #expect(seen == [0, 1])
    }

    @Test func aTornFormatIsNoTagOrAWholeOneAndCanBeDoneAgain() async throws {
        for step in 1...40 {
            let transport = try transport("desfire?layout=%23")
            var isDone = true
            do {
                try await CoreExtendedNFC.formatNDEF(
                    info: Self.desfire, transport: Vanishing(transport, at: step, takesEffect: step % 2 == 0))
            } catch NFCError.tagConnectionLost {
                isDone = false
            }
            let again = VirtualCardTransport(transport.card)
            do {
                #expect(try await CoreExtendedNFC.readNDEF(info: Self.desfire, transport: again).records.isEmpty)
            } catch let error as NFCError {
                #expect(!isDone, "step \(step): \(error)")
            }
            try await CoreExtendedNFC.formatNDEF(info: Self.desfire, transport: again)
            try await CoreExtendedNFC.writeNDEF(.text("x"), info: Self.desfire, transport: again)
            #expect(try await CoreExtendedNFC.readNDEF(info: Self.desfire, transport: again) == .text("x"))
            if isDone { break }
        }
    }

    @Test func aTagThatMayNotBeWrittenIsLocked() async throws {
        let layout =
            "app 000001 aes iso E110 name D2760000850101; file 1 std 15 plain E0E0 iso E103 = 000F20003A00340406E10400FF00FF; "
            + "file 2 std 255 plain EEE0 iso E104"
        let transport = VirtualCardTransport(
            try VirtualCardCatalog.make(VirtualCardSpecification(kind: "desfire", arguments: ["--layout", layout])))
        await #expect(throws: NFCError.tagLocked) {
            try await CoreExtendedNFC.writeNDEF(.text("x"), info: Self.desfire, transport: transport)
        }
    }

    // T4T 1.0: the old name, and no P2 0C.
    @Test func mappingVersion1IsRead() async throws {
        let chip = ScriptedChip(exchanges: [
            ("00A4040007D276000085010100", "6A82"), ("00A4040007D276000085010000", "9000"), ("00A4000002E103", "9000"),
            ("00B000000F", "000F10003B00340406E104007F0000" + "9000"), ("00A4000002E104", "9000"), ("00B0000002", "00059000"),
            ("00B0000205", "D10101540" + "09000"),
        ])
        #expect(try await CoreExtendedNFC.readType4NDEF(transport: chip) == data("D101015400"))
    }

    @Test(arguments: [CardType.mifareClassic1K, .felicaStandard])
    func aCardWithoutThisMappingIsNotTried(type: CardType) async throws {
        let chip = ScriptedChip { _, _ in [0x90, 0x00] }
        await #expect(throws: NFCError.unsupportedOperation("")) {
            try await CoreExtendedNFC.readNDEF(info: CardInfo(type: type, uid: Data()), transport: chip)
        }
        #expect(chip.commands.isEmpty)
    }

    @Test(arguments: ["9000", "6A82", "019000", "6700", "6100", "6C05", "FFFF9000"])
    func whateverATagAnswersIsNoTrap(answer: String) async throws {
        let chip = ScriptedChip { _, _ in octets(answer) }
        await #expect(throws: (any Error).self) {
            try await CoreExtendedNFC.readNDEF(info: Self.ntag, transport: chip)
        }
        #expect(chip.commands.count < 200)
    }
}
