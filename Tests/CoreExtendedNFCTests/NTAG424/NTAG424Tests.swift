// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Testing
import VirtualCards

private func ntag(_ options: [String] = []) throws -> VirtualCardTransport {
    VirtualCardTransport(try VirtualCardCatalog.make(VirtualCardSpecification(kind: "ntag424", arguments: options)))
}

private let keyText = "101112131415161718191A1B1C1D1E1F"
private func key(_ first: UInt8 = 0x10) throws -> DESFireKey { try DESFireKey(.aes, (0..<16).map { first + $0 }) }

/// The reader against the virtual NTAG 424 DNA, in both of its channels.
@Suite struct NTAG424Tests {
    // NXP AN12196: GetFileSettings of a personalised chip.
    @Test func fileSettingsAreThoseOfTheApplicationNote() throws {
        let settings = try NTAG424FileSettings(bytes: octets("0040EEEE000100D1FE001F00004400004400002000006A0000"))
        #expect(settings.fileSize == 256 && settings.communication == .plain && settings.accessRights == .free)
        let messaging = try #require(settings.dynamicMessaging)
        #expect(messaging.options == 0xD1 && messaging.metaRead == .key(0) && messaging.fileRead == .key(0))
        #expect(messaging.counterRead == .free && messaging.uidOffset == nil && messaging.readCounterOffset == nil)
        #expect(messaging.piccDataOffset == 0x1F && messaging.macInputOffset == 0x44 && messaging.encryptedOffset == 0x44)
        #expect(messaging.encryptedLength == 0x20 && messaging.macOffset == 0x6A && messaging.readCounterLimit == nil)
        for length in 0..<25 {
            #expect(throws: NFCError.self) {
                try NTAG424FileSettings(bytes: octets("0040EEEE000100D1FE001F00004400004400002000006A0000").prefix(length))
            }
        }
    }

    // The example of a plain WriteData: the proprietary file's control in the capability container.
    @Test func aPlainWriteIsTheFrameOfTheApplicationNote() async throws {
        let chip = ScriptedChip(exchanges: [
            ("00A4040C07D276000085010100", "9000"),
            ("908D000019010E0000120000FF0506E10500808283000000000000000000" + "00", "9100"),
        ])
        try await CoreExtendedNFC.writeNTAG424DataPlain(
            fileID: 1, offset: 0x0E, data: data("FF0506E10500808283000000000000000000"), transport: chip)
        #expect(chip.commands.count == 2)
        await #expect(throws: NFCError.unsupportedOperation("")) {
            try await CoreExtendedNFC.writeNTAG424DataPlain(
                fileID: 1, data: Data([1]), chunkSize: 249,
                transport: ScriptedChip(exchanges: [("00A4040C07D276000085010100", "9000")]))
        }
    }

    @Test func plainPiecesFollowEachOther() async throws {
        let transport = try ntag(["--blank"])
        let text = Data((0..<250).map { UInt8($0) })
        try await CoreExtendedNFC.writeNTAG424DataPlain(
            fileID: 2, offset: 3, data: text, chunkSize: 7, transport: transport)
        var card = NTAG424Card(transport: transport)
        #expect(try await card.read(2, offset: 3, length: 250) == text)
        #expect(try await CoreExtendedNFC.getNTAG424FileSettings(fileID: 3, transport: transport).communication == .enciphered)
        await #expect(throws: NFCError.desfireError(.authenticationError)) {
            try await CoreExtendedNFC.writeNTAG424DataPlain(fileID: 3, data: text, transport: transport)
        }
    }

    @Test(arguments: [DESFireAuthentication.ev2First, .lrpFirst], [DESFireCommunicationMode.plain, .maced, .enciphered])
    func everyCommandWorksInEveryMode(method: DESFireAuthentication, mode: DESFireCommunicationMode) async throws {
        let transport = try ntag(["--blank", "--key", "0=\(keyText)"] + (method == .lrpFirst ? ["--lrp"] : []))
        var card = NTAG424Card(transport: transport)
        try await card.selectApplication()
        #expect(try await card.version().generation == .ntag424DNA)
        try await card.authenticate(keyNumber: 0, key: try key(), method: method)
        #expect(try await card.cardUID() == transport.identifier)
        #expect(try await card.version().uid == transport.identifier)
        #expect(try await card.keyVersion(3) == 0)
        let rights = DESFireAccessRights(read: .key(0), write: .key(0), readWrite: .key(0), change: .key(0))
        try await card.changeFileSettings(2, communication: mode, accessRights: rights)
        #expect(try await card.fileSettings(2).communication == mode)
        let text = Data((0..<200).map { UInt8($0) })
        try await card.write(2, offset: 5, text)
        #expect(try await card.read(2, offset: 5, length: 200) == text)
        #expect(try await card.read(2).count == 256)
        for length in 1...17 {
            try await card.write(2, Data(repeating: 7, count: length))
            #expect(try await card.read(2, length: length) == Data(repeating: 7, count: length))
        }
        try await card.changeKey(3, to: try DESFireKey(.aes, key(0x40).octets, version: 9), from: .zero(.aes))
        #expect(try await card.keyVersion(3) == 9)
        let nonFirst: DESFireAuthentication = method == .lrpFirst ? .lrpNonFirst : .ev2NonFirst
        try await card.authenticate(keyNumber: 3, key: try key(0x40), method: nonFirst)
        #expect(try await card.cardUID() == transport.identifier)
        try await card.authenticate(keyNumber: 0, key: try key(), method: nonFirst)
        try await card.changeKey(0, to: try key(0x70))
        #expect(card.session == nil)
        try await card.authenticate(keyNumber: 0, key: try key(0x70), method: method)
        let dynamic = NTAG424DynamicMessaging(
            options: 0xC1, metaRead: .free, fileRead: .key(0), counterRead: .key(0), uidOffset: 10, readCounterOffset: 30,
            macInputOffset: 40, macOffset: 60)
        try await card.changeFileSettings(2, communication: .plain, accessRights: .free, dynamicMessaging: dynamic)
        #expect(try await card.fileSettings(2).dynamicMessaging == dynamic)
        #expect(try await card.readCounter(2) == 0)
        #expect(try await card.signature() == Data(count: 56))
        #expect(try await !card.isOriginal())
    }

    @Test func aCardInLRPRefusesAESAndTheOtherWayRound() async throws {
        let transport = try ntag(["--blank"])
        var card = NTAG424Card(transport: transport)
        await #expect(throws: NFCError.desfireError(.permissionDenied)) {
            try await card.authenticate(keyNumber: 0, key: .zero(.aes), method: .lrpFirst)
        }
        try await card.authenticate(keyNumber: 0, key: .zero(.aes))
        await #expect(throws: NFCError.unsupportedOperation("")) { try await card.switchToLRP() }
        try await card.switchToLRP(allowIrreversible: true)
        await #expect(throws: NFCError.desfireError(.permissionDenied)) {
            try await card.authenticate(keyNumber: 0, key: .zero(.aes))
        }
        try await card.authenticate(keyNumber: 0, key: .zero(.aes), method: .lrpFirst)
        #expect(try await card.keyVersion(0) == 0)
    }

    @Test(arguments: [DESFireAuthentication.ev2First, .lrpFirst], [0xF5, 0x64, 0x51, 0xAD, 0x8D] as [UInt8])
    func aForgedAnswerIsAnError(method: DESFireAuthentication, code: UInt8) async throws {
        for forgery in 0..<5 {
            let transport = Interceptor(try ntag(method == .lrpFirst ? ["--lrp"] : [])) { command, answer in
                guard command[1] == code, answer.statusWord == 0x9100 else { return answer }
                var data = answer.data
                switch forgery {
                case 0: data = data.dropLast(8)
                case 1: data.append(0)
                case 2: data[0] ^= 1
                case 3: data[data.count - 1] ^= 0x80
                default: data = Data()
                }
                return ResponseAPDU(data: data, statusWord: 0x9100)
            }
            var card = NTAG424Card(transport: transport)
            try await card.authenticate(keyNumber: 3, key: .zero(.aes), method: method)
            await #expect(throws: NFCError.secureMessagingError(""), "forgery \(forgery)") {
                switch code {
                case 0xF5: _ = try await card.fileSettings(3)
                case 0x64: _ = try await card.keyVersion(1)
                case 0x51: _ = try await card.cardUID()
                case 0xAD: _ = try await card.read(3, length: 20, mode: .enciphered)
                default: try await card.write(3, Data([1, 2, 3]), mode: .enciphered)
                }
            }
            await #expect(throws: NFCError.secureMessagingError("")) { try await card.keyVersion(0) }
        }
    }

    // Signatures of real chips that proxmark3's tools carry.
    @Test func theSignatureOfARealChipIsNXPs() async throws {
        let signature =
            "27E9A50E6CA4BA9037C02F7D20A80D0284D0C1D83C67F5A5AC1D8A4EF86C9508417E4E9C6F85AA7920F0ABDED984CAF20467D66EA54BBF08"
        for (uid, isOriginal) in [("0463474AA26A80", true), ("0463474AA26A81", false)] {
            var card = NTAG424Card(transport: try ntag(["--uid", uid, "--signature", signature]))
            #expect(try await card.isOriginal() == isOriginal)
        }
        #expect(throws: NFCError.cryptoError("")) { try NTAG424Originality.verify(signature: Data(), uid: Data()) }
    }
}
