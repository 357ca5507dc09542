// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Testing
import VirtualCards

/// The reader against the virtual card: every command in every channel and mode.
@Suite struct DESFireCommandTests {
    private func text(_ count: Int, _ first: UInt8 = 1) -> Data {
        Data((0..<count).map { first &+ UInt8(truncatingIfNeeded: $0) })
    }

    @Test(arguments: DESFireSetting.all, [DESFireFraming.isoWrapped, .native])
    func dataIsWrittenAndReadInEveryMode(_ setting: DESFireSetting, framing: DESFireFraming) async throws {
        let transport = try setting.transport()
        for file in UInt8(1)...3 {
            var card = try await setting.card(over: transport, key: 3, framing: framing)
            // Longer than a frame, at a place that is not a block's.
            try await card.write(file, offset: 7, text(150, file))
            #expect(try await card.read(file, offset: 7, length: 150) == text(150, file))
            #expect(try await card.read(file, offset: 7, length: 3) == text(3, file))
            #expect(try await card.read(file) == Data(count: 7) + text(150, file) + Data(count: 43))
            for length in 1...34 {
                try await card.write(file, text(length))
                #expect(try await card.read(file, length: length) == text(length))
            }
            #expect(try await card.fileSettings(file).fileSize == 200)
        }
    }

    @Test(arguments: DESFireSetting.all) func openEndedReadsKeepTrailingZeros(_ setting: DESFireSetting) async throws {
        let transport = try setting.transport()
        var card = try await setting.card(over: transport, key: 3)
        for file in UInt8(1)...3 {
            for offset in 180..<200 { #expect(try await card.read(file, offset: offset) == Data(count: 200 - offset)) }
            try await card.write(file, offset: 190, Data([0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
            #expect(try await card.read(file, offset: 190) == Data([0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
        }
    }

    @Test(arguments: DESFireSetting.all) func aBackupFileHoldsFromTheCommitOn(_ setting: DESFireSetting) async throws {
        let transport = try setting.transport()
        var card = try await setting.card(over: transport, key: 3)
        for file in UInt8(4)...6 {
            try await card.write(file, text(70))
            #expect(try await card.read(file, length: 70) == Data(count: 70))
            try await card.commitTransaction()
            #expect(try await card.read(file, length: 70) == text(70))
            try await card.write(file, text(70, 99))
            try await card.abortTransaction()
            #expect(try await card.read(file, length: 70) == text(70))
        }
    }

    @Test(arguments: DESFireSetting.all) func valuesAreCountedInEveryMode(_ setting: DESFireSetting) async throws {
        let transport = try setting.transport()
        var card = try await setting.card(over: transport, key: 3)
        for file in UInt8(7)...9 {
            #expect(try await card.value(file) == 500)
            try await card.debit(file, 550)
            try await card.commitTransaction()
            #expect(try await card.value(file) == -50)
            try await card.limitedCredit(file, 550)
            try await card.commitTransaction()
            try await card.credit(file, 9_500)
            #expect(try await card.value(file) == 500)
            try await card.commitTransaction()
            #expect(try await card.value(file) == 10_000)
            guard case .value(let lower, let upper, _, let options) = try await card.fileSettings(file).kind else {
                Issue.record("no value file")
                continue
            }
            #expect(lower == -100 && upper == 10_000 && options == 1)
        }
        await #expect(throws: NFCError.desfireError(.boundaryError)) { try await card.credit(9, 1) }
    }

    @Test(arguments: DESFireSetting.all) func recordsAreKeptInEveryMode(_ setting: DESFireSetting) async throws {
        let transport = try setting.transport()
        var card = try await setting.card(over: transport, key: 3)
        for file in UInt8(10)...15 {
            for number in UInt8(1)...3 {
                try await card.writeRecord(file, text(24, number))
                try await card.commitTransaction()
            }
            #expect(try await card.readRecords(file) == text(24, 1) + text(24, 2) + text(24, 3))
            #expect(try await card.readRecords(file, offset: 1, count: 1) == text(24, 2))
            #expect(try await card.readRecords(file, offset: 0, count: 2) == text(24, 2) + text(24, 3))
            if setting.generation == "ev2" || setting.generation == "ev3" {
                try await card.updateRecord(file, record: 0, offset: 4, Data([0xAA, 0xBB]))
                try await card.commitTransaction()
                #expect(try await card.readRecords(file, offset: 0, count: 1)[4..<6] == Data([0xAA, 0xBB]))
            }
            try await card.clearRecords(file)
            try await card.commitTransaction()
            #expect(try await card.fileSettings(file).currentRecords == 0)
        }
    }

    @Test func aCyclicFileLosesItsOldestRecordAndALinearOneIsFull() async throws {
        let setting = DESFireSetting.all[8]
        var card = try await setting.card(over: try setting.transport(), key: 3)
        for number in UInt8(1)...5 {
            try await card.writeRecord(15, text(24, number))
            try await card.commitTransaction()
        }
        #expect(try await card.readRecords(15) == text(24, 3) + text(24, 4) + text(24, 5))
        for number in UInt8(1)...5 {
            try await card.writeRecord(12, text(24, number))
            try await card.commitTransaction()
        }
        await #expect(throws: NFCError.desfireError(.boundaryError)) { try await card.writeRecord(12, text(24)) }
    }

    @Test(arguments: DESFireSetting.all) func applicationsAndFilesAreMadeAndDeleted(_ setting: DESFireSetting) async throws {
        let transport = try setting.transport()
        var card = DESFireCard(transport: transport)
        // The card's own master key is of zeros.
        try await card.authenticate(keyNumber: 0, key: .zero(.des), method: setting.generation == "d40" ? .legacy : .iso)
        let free = setting.generation == "d40" ? 0 : try await card.freeMemory()
        let identifier = Data([1, 2, 3])
        try await card.createApplication(
            DESFireApplicationParameters(identifier: identifier, cipher: setting.cipher, keyCount: 3))
        #expect(try await card.applicationIDs() == [DESFireSetting.application, identifier])
        if setting.generation != "d40" { #expect(try await card.freeMemory() < free) }
        try await card.selectApplication(identifier)
        try await card.authenticate(keyNumber: 0, key: .zero(setting.cipher), method: setting.method)
        let keys = try await card.keySettings()
        #expect(keys.settings == 0x0F && keys.keyCount == 3)
        #expect(keys.cipher == (setting.cipher == .des ? .twoKeyTripleDES : setting.cipher))
        let rights = DESFireAccessRights(read: .key(0), write: .key(0), readWrite: .key(0), change: .key(0))
        let kinds: [DESFireFileParameters.Kind] = [
            .standard(size: 10), .backup(size: 20), .value(lower: -5, upper: 5, initial: 1, limitedCredit: true),
            .linearRecord(size: 8, most: 2), .cyclicRecord(size: 8, most: 3),
        ]
        for (number, kind) in kinds.enumerated() {
            try await card.createFile(
                DESFireFileParameters(number: UInt8(number), kind: kind, communication: .enciphered, accessRights: rights))
        }
        #expect(try await card.fileIDs() == [0, 1, 2, 3, 4])
        let settings = try await card.fileSettings(2)
        #expect(settings.kind == .value(lower: -5, upper: 5, limitedCredit: 0, options: 1) && settings.accessRights == rights)
        try await card.changeFileSettings(0, communication: .maced, accessRights: .free)
        #expect(try await card.fileSettings(0).communication == .maced)
        // Now that everybody may change it, the command is plain.
        try await card.changeFileSettings(0, communication: .plain, accessRights: rights)
        #expect(try await card.fileSettings(0).accessRights == rights)
        try await card.deleteFile(0)
        #expect(try await card.fileIDs() == [1, 2, 3, 4])
        try await card.changeKeySettings(0x0B)
        #expect(try await card.keySettings().settings == 0x0B)
        try await card.deleteApplication(identifier)
        #expect(card.session == nil && card.selectedApplication == Data([0, 0, 0]))
        #expect(try await card.applicationIDs() == [DESFireSetting.application])
    }

    @Test(arguments: DESFireSetting.all) func keysAreChanged(_ setting: DESFireSetting) async throws {
        let transport = try setting.transport()
        var card = try await setting.card(over: transport, key: 0)
        let new = try DESFireKey(
            setting.cipher, (0..<setting.cipher.keyLength).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 0x40) }, version: 0x55)
        try await card.changeKey(1, to: new, from: try setting.key(1))
        #expect(try await card.keyVersion(1) == 0x55)
        try await card.changeKey(0, to: new)
        #expect(card.session == nil)
        for number in UInt8(0)...1 {
            try await card.authenticate(keyNumber: number, key: new, method: setting.method)
            #expect(card.session?.keyNumber == number)
        }
        await #expect(throws: NFCError.authenticationFailed) {
            try await card.authenticate(keyNumber: 1, key: try setting.key(1), method: setting.method)
        }
        // A wrong old key is found out by the card.
        try await card.authenticate(keyNumber: 0, key: new, method: setting.method)
        await #expect(throws: NFCError.desfireError(.integrityError)) {
            try await card.changeKey(2, to: new, from: try setting.key(3))
        }
    }

    @Test func theCardsMasterKeyMayChangeItsCipher() async throws {
        let setting = DESFireSetting.all[8]
        let transport = try setting.transport()
        var card = DESFireCard(transport: transport)
        var key = DESFireKey.zero(.des)
        for cipher in [DESFireCipher.aes, .threeKeyTripleDES, .twoKeyTripleDES, .des, .aes] {
            try await card.authenticate(keyNumber: 0, key: key)
            key = try DESFireKey(cipher, (0..<cipher.keyLength).map { UInt8($0 + 1) }, version: 3)
            try await card.changeKey(0, to: key)
        }
        try await card.authenticate(keyNumber: 0, key: key, method: .ev2First)
        #expect(try await card.keyVersion(0) == 3)
        try await card.format()
        #expect(try await card.applicationIDs().isEmpty)
    }

    @Test(arguments: DESFireSetting.all) func theCardTellsItsVersionAndUID(_ setting: DESFireSetting) async throws {
        let transport = try setting.transport()
        var card = try await setting.card(over: transport, key: nil)
        let plain = try await card.version()
        #expect(plain.generation.rawValue == setting.generation && plain.uid == transport.identifier)
        card = try await setting.card(over: transport, key: 1)
        #expect(try await card.version() == plain)
        if setting.generation != "d40" { #expect(try await card.cardUID() == transport.identifier) }
    }

    @Test func anEV2SessionGoesOnUnderAnotherKey() async throws {
        let setting = DESFireSetting.all[8]
        var card = try await setting.card(over: try setting.transport(), key: 2)
        try await card.write(3, text(20), mode: .enciphered)
        await #expect(throws: NFCError.desfireError(.authenticationError)) { try await card.read(3, mode: .enciphered) }
        card = try await setting.card(over: try setting.transport(), key: 2)
        try await card.write(6, text(20))
        try await card.authenticate(keyNumber: 3, key: try setting.key(3), method: .ev2NonFirst)
        try await card.commitTransaction()
        #expect(try await card.read(6, length: 20) == text(20))
        #expect(card.session?.keyNumber == 3 && card.session?.capabilities.count == 12)
        var fresh = try await setting.card(over: try setting.transport(), key: nil)
        await #expect(throws: NFCError.unsupportedOperation("")) {
            try await fresh.authenticate(keyNumber: 3, key: try setting.key(3), method: .ev2NonFirst)
        }
    }

    @Test func oneISOChainCarriesWhatFramesWouldCut() async throws {
        let setting = DESFireSetting.all[8]
        let transport = try setting.transport()
        for file in UInt8(1)...3 {
            var card = try await setting.card(over: transport, key: 3, chaining: .iso)
            try await card.write(file, text(150, file))
            #expect(try await card.read(file, length: 150) == text(150, file))
        }
        var card = try await setting.card(over: transport, key: 3, chaining: .iso)
        try await card.writeRecord(12, text(24))
        try await card.commitTransaction()
        try await card.updateRecord(12, record: 0, text(2, 50))
        try await card.commitTransaction()
        #expect(try await card.readRecords(12) == text(2, 50) + text(22, 3))
    }

    @Test func keySetsAreMadeAndRolled() async throws {
        let setting = DESFireSetting.all[8]
        let transport = try setting.transport()
        var card = try await setting.card(over: transport, key: 0)
        let new = try DESFireKey(.aes, (0..<16).map { UInt8($0 + 0x60) }, version: 9)
        try await card.initializeKeySet(1, cipher: .aes)
        try await card.changeKey(0, to: new, from: .zero(.aes), keySet: 1)
        try await card.finalizeKeySet(1, version: 1)
        try await card.rollKeySet(1)
        #expect(card.session == nil)
        try await card.authenticate(keyNumber: 0, key: new, method: .ev2First)
        #expect(try await card.keyVersion(0) == 9)
    }

    @Test func theTransactionMACCoversWhatWasWritten() async throws {
        let setting = DESFireSetting.all[8]
        let transport = try setting.transport()
        var card = try await setting.card(over: transport, key: 0)
        let key = try DESFireKey(.aes, (0..<16).map { UInt8($0 + 0x31) }, version: 4)
        try await card.createFile(
            DESFireFileParameters(
                number: 20, kind: .transactionMAC(key: key), communication: .plain,
                accessRights: DESFireAccessRights(rawValue: 0xEFF0)))
        #expect(try await card.fileSettings(20).kind == .transactionMAC(keyOption: 2, keyVersion: 4))
        try await card.authenticate(keyNumber: 3, key: try setting.key(3), method: .ev2First)
        try await card.debit(9, 7)
        try await card.write(6, text(3))
        let mac = try await card.commitTransactionWithMAC()
        var input = DESFireTransactionInput()
        input.append(.debit, header: Data([9]), data: Data([7, 0, 0, 0]))
        input.append(.writeData, header: Data([6, 0, 0, 0, 3, 0, 0]), data: text(3))
        #expect(mac.counter == 1)
        #expect(try mac.verify(key: key, uid: transport.identifier, input: input))
        #expect(try await card.read(20) == Data([1, 0, 0, 0]) + mac.mac)
        input.append(.credit, header: Data([9]), data: Data([7, 0, 0, 0]))
        #expect(try !mac.verify(key: key, uid: transport.identifier, input: input))
    }

    @Test(arguments: DESFireSetting.all.filter { $0.generation != "d40" && $0.method != .legacy && $0.method != .ev2First })
    func theISOAuthenticationOpensAnEV1Channel(_ setting: DESFireSetting) async throws {
        var card = try await setting.card(over: try setting.transport(), key: nil)
        try await card.isoAuthenticate(keyNumber: 3, key: try setting.key(3))
        try await card.write(3, text(40))
        #expect(try await card.read(3, length: 40) == text(40))
        card = try await setting.card(over: try setting.transport(), key: nil)
        await #expect(throws: NFCError.authenticationFailed) {
            try await card.isoAuthenticate(keyNumber: 3, key: try setting.key(2))
        }
    }

    @Test func freeFilesArePlainForWhoeverHasNoKeyOfTheirs() async throws {
        let layout = "app F00001 aes keys 3\nfile 1 std 16 full E00F = 01\nfile 2 std 16 full EE1F = 02"
        let transport = VirtualCardTransport(
            try VirtualCardCatalog.make(VirtualCardSpecification(kind: "desfire", arguments: ["--layout", layout])))
        var card = DESFireCard(transport: transport)
        try await card.selectApplication(DESFireSetting.application)
        #expect(try await card.read(1, length: 1) == Data([1]))
        try await card.authenticate(keyNumber: 2, key: .zero(.aes), method: .ev2First)
        #expect(try await card.read(1, length: 1) == Data([1]))
        #expect(try await card.read(2, length: 1) == Data([2]))
        try await card.authenticate(keyNumber: 1, key: .zero(.aes), method: .ev2First)
        #expect(try await card.read(2, length: 1) == Data([2]))
    }

    @Test func theFacadeHasTheNamesOfTheSeedPage() async throws {
        let layout =
            "app F00001 aes keys 1\nfile 1 std 4 plain EEEE = 01020304\nfile 2 value 0..9 5 plain EEEE\nfile 3 linear 2x2 plain EEEE"
        let transport = VirtualCardTransport(
            try VirtualCardCatalog.make(VirtualCardSpecification(kind: "desfire", arguments: ["--layout", layout])))
        #expect(try await CoreExtendedNFC.getDESFireVersion(transport: transport).generation == .ev2)
        #expect(try await CoreExtendedNFC.getDESFireApplicationIDs(transport: transport) == [DESFireSetting.application])
        try await CoreExtendedNFC.selectDESFireApplication(DESFireSetting.application, transport: transport)
        #expect(try await CoreExtendedNFC.getDESFireFileIDs(transport: transport) == [1, 2, 3])
        #expect(try await CoreExtendedNFC.getDESFireFileSettings(1, transport: transport).fileSize == 4)
        #expect(try await CoreExtendedNFC.readDESFireData(fileID: 1, offset: 1, length: 2, transport: transport) == Data([2, 3]))
        #expect(try await CoreExtendedNFC.getDESFireValue(fileID: 2, transport: transport) == 5)
        await #expect(throws: NFCError.desfireError(.boundaryError)) {
            try await CoreExtendedNFC.readDESFireRecords(fileID: 3, transport: transport)
        }
        #expect(try await CoreExtendedNFC.sendDESFireCommand(0x6F, transport: transport) == Data([1, 2, 3]))
        await #expect(throws: NFCError.applicationNotFound(aid: Data([9, 9, 9]))) {
            try await CoreExtendedNFC.selectDESFireApplication(Data([9, 9, 9]), transport: transport)
        }
        await #expect(throws: NFCError.unsupportedOperation("")) {
            try await CoreExtendedNFC.readDESFireData(fileID: 1, offset: 1 << 24, transport: transport)
        }
        var card = try await CoreExtendedNFC.authenticateDESFireEV2(keyNo: 0, key: Data(count: 16), transport: transport)
        #expect(try await card.read(1) == Data([1, 2, 3, 4]))
    }
}
