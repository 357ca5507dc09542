// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Synchronization
import Testing
import VirtualCards

/// No authenticated call succeeds with an answer that is not the card's to it.
@Suite struct DESFireWrongSuccessTests {
    /// What is done to the answer of an authenticated call.
    enum Forgery: String, CaseIterable, Sendable {
        case macDropped, shortMACDropped, byteLong, byteShort, bitFlipped, replayed, empty, otherStatus
    }

    /// The calls, each prepared so that only its last exchange is forged.
    struct Call: Sendable, CustomTestStringConvertible {
        let name: String
        /// The code whose answer is forged.
        let code: UInt8
        let run: @Sendable (inout DESFireCard) async throws -> Void
        var testDescription: String { name }
    }

    static let calls: [Call] = [
        Call(name: "read MACed", code: 0xBD) { _ = try await $0.read(2, length: 20, mode: .maced) },
        Call(name: "read enciphered", code: 0xBD) { _ = try await $0.read(3, length: 20, mode: .enciphered) },
        Call(name: "read to the end", code: 0xBD) { _ = try await $0.read(3, offset: 160, mode: .enciphered) },
        Call(name: "value MACed", code: 0x6C) { _ = try await $0.value(8, mode: .maced) },
        Call(name: "value enciphered", code: 0x6C) { _ = try await $0.value(9, mode: .enciphered) },
        Call(name: "write MACed", code: 0x3D) { try await $0.write(2, Data([1, 2, 3]), mode: .maced) },
        Call(name: "write enciphered", code: 0x3D) { try await $0.write(3, Data([1, 2, 3]), mode: .enciphered) },
        Call(name: "credit", code: 0x0C) { try await $0.credit(9, 5, mode: .enciphered) },
        Call(name: "file settings", code: 0xF5) { _ = try await $0.fileSettings(3) },
        Call(name: "file list", code: 0x6F) { _ = try await $0.fileIDs() },
        Call(name: "key version", code: 0x64) { _ = try await $0.keyVersion(1) },
        Call(name: "key settings", code: 0x45) { _ = try await $0.keySettings() },
        Call(name: "card UID", code: 0x51) { _ = try await $0.cardUID() },
        Call(name: "commit", code: 0xC7) { card in
            try await card.write(6, Data([9]), mode: .enciphered)
            try await card.commitTransaction()
        },
    ]

    /// Commands of D40 whose answers that channel does not protect at all.
    private static let bareInD40: Set<UInt8> = [0x3D, 0x0C, 0xF5, 0x6F, 0x64, 0x45, 0x51, 0xC7]

    @Test(arguments: DESFireSetting.all, calls) func aForgedAnswerIsAnError(_ setting: DESFireSetting, _ call: Call) async throws
    {
        for forgery in Forgery.allCases {
            if setting.method == .legacy, Self.bareInD40.contains(call.code) { continue }
            // The MAC of D40 has neither a counter nor a chain: an old answer to the same question is as good as a new one.
            if setting.method == .legacy, forgery == .replayed { continue }
            let last = Mutex<[UInt8: ResponseAPDU]>([:])
            let count = Mutex(0)
            let isArmed = Mutex(false)
            let transport = Interceptor(try setting.transport()) { command, answer in
                guard command[1] == call.code || (command[1] == 0xAF && isArmed.withLock { $0 }) else { return answer }
                guard isArmed.withLock({ $0 }) else {
                    last.withLock { $0[call.code] = answer }
                    return answer
                }
                guard answer.statusWord == 0x9100 else { return answer }
                count.withLock { $0 += 1 }
                return Self.forged(answer, forgery, before: last.withLock { $0[call.code] })
            }
            var card = try await setting.card(over: transport, key: 3)
            // Once as it should be, which also gives the answer to replay.
            try await call.run(&card)
            isArmed.withLock { $0 = true }
            await #expect(throws: (any Error).self, "\(setting) \(call.name) \(forgery)") { try await call.run(&card) }
            #expect(count.withLock { $0 } > 0, "\(setting) \(call.name) \(forgery): nothing was forged")
            // And nothing else succeeds in what is left of the session.
            isArmed.withLock { $0 = false }
            await #expect(throws: NFCError.secureMessagingError("")) { try await card.read(2, length: 1, mode: .plain) }
        }
    }

    private static func forged(_ answer: ResponseAPDU, _ forgery: Forgery, before: ResponseAPDU?) -> ResponseAPDU {
        var data = answer.data
        switch forgery {
        case .macDropped: data = data.dropLast(8)
        case .shortMACDropped: data = data.dropLast(4)
        case .byteLong: data.append(0)
        case .byteShort: data = data.dropLast(1)
        case .bitFlipped: data[data.startIndex] ^= 0x01
        case .replayed: return before ?? answer
        case .empty: data = Data()
        case .otherStatus: return ResponseAPDU(data: data, statusWord: 0x91AE)
        }
        return ResponseAPDU(data: data, statusWord: 0x9100)
    }

    // Row F1: EV2 with keys that are not zeros; the answer of the first command behind the authentication stands.
    @Test func aSessionOfAWrongKeyIsFoundOutInTheAuthentication() async throws {
        let setting = DESFireSetting.all[8]
        var card = try await setting.card(over: try setting.transport(), key: nil)
        await #expect(throws: NFCError.authenticationFailed) {
            try await card.authenticate(keyNumber: 1, key: try setting.key(2), method: .ev2First)
        }
        #expect(card.session == nil)
    }

    // Row F3: a card of EV2 under the channel of EV1 and the other way round.
    @Test func theChannelDecidesHowAFileTravels() async throws {
        for setting in DESFireSetting.all where setting.generation == "ev2" {
            var card = try await setting.card(over: try setting.transport(), key: 3)
            for file in UInt8(1)...3 {
                try await card.write(file, Data(repeating: file, count: 33))
                #expect(try await card.read(file, length: 33) == Data(repeating: file, count: 33))
            }
            // Said wrong by the caller, the mode is refused by the card, and the session is over.
            await #expect(throws: NFCError.desfireError(.lengthError)) {
                try await card.write(3, Data(repeating: 1, count: 40), mode: .plain)
            }
        }
    }

    // Row F5: a MACed read in the D40 channel.
    @Test func aD40ReadWithAWrongMACIsAnError() async throws {
        let setting = DESFireSetting.all[0]
        let transport = Interceptor(try setting.transport()) { command, answer in
            guard command[1] == 0xBD else { return answer }
            var data = answer.data
            data[data.count - 1] ^= 1
            return ResponseAPDU(data: data, statusWord: answer.statusWord)
        }
        var card = try await setting.card(over: transport, key: 3)
        await #expect(throws: NFCError.secureMessagingError("")) { try await card.read(2, length: 8) }
    }

    // Row F7: ISO SELECT of an application ends the native session; of a file it changes nothing native.
    @Test func anISOSelectHasTheEffectsOfASelection() async throws {
        let transport = VirtualCardTransport(try VirtualCardCatalog.make(kind: "desfire"))
        var card = DESFireCard(transport: transport)
        try await card.selectApplication(Data([0, 0, 1]))
        try await card.isoSelect(.file(0xE103))
        // The native selection stands.
        #expect(try await card.fileIDs() == [1, 2])
        try await card.authenticate(keyNumber: 0, key: .zero(.aes), method: .ev2First)
        await #expect(throws: NFCError.unsupportedOperation("")) { try await card.isoSelect(.file(0xE104)) }
        await #expect(throws: NFCError.unsupportedOperation("")) { try await card.isoReadBinary(offset: 0, length: 4) }
        #expect(try await card.fileIDs() == [1, 2])
        try await card.isoSelect(.name(Data([0xD2, 0x76, 0, 0, 0x85, 0x01, 0x01])))
        #expect(card.session == nil && card.selectedApplication == nil)
        #expect(try await card.fileIDs() == [1, 2])
        await #expect(throws: NFCError.unexpectedStatusWord(0x6A, 0x82)) { try await card.isoSelect(.file(0xE1FF)) }
        await #expect(throws: NFCError.unexpectedStatusWord(0x6A, 0x82)) { try await card.isoSelect(.name(Data([1, 2]))) }
        // A select that failed has changed nothing.
        #expect(try await card.fileIDs() == [1, 2])
        try await card.isoSelect(.name(Data([0xD2, 0x76, 0, 0, 0x85, 0x01, 0x00])))
        #expect(try await card.applicationIDs() == [Data([0xF0, 0, 1]), Data([0, 0, 1])])
    }

    @Test func anAuthenticationThatIsPutOffIsAskedForAgain() async throws {
        let setting = DESFireSetting.all[8]
        var card = try await setting.card(over: try setting.transport(), key: nil)
        for _ in 0..<3 {
            await #expect(throws: NFCError.authenticationFailed) {
                try await card.authenticate(keyNumber: 1, key: try setting.key(2), method: .ev2First)
            }
        }
        try await card.authenticate(keyNumber: 1, key: try setting.key(1), method: .ev2First)
        #expect(card.session?.keyNumber == 1)
    }

    @Test func aCardThatNeverEndsItsAnswerIsGivenUp() async throws {
        let chip = ScriptedChip { _, _ in [0x91, 0xAF] }
        var card = DESFireCard(transport: chip)
        await #expect(throws: NFCError.invalidResponse(Data())) { try await card.applicationIDs() }
        #expect(chip.commands.count < 8)
    }

    @Test(arguments: ["", "00", "9100", "6700", "91CA", "91", "01029100", "0102039000"])
    func whateverACardAnswersIsNoTrap(answer: String) async throws {
        let chip = ScriptedChip { _, _ in octets(answer) }
        let calls: [@Sendable (inout DESFireCard) async throws -> Void] = [
            { _ = try await $0.version() }, { _ = try await $0.freeMemory() }, { _ = try await $0.dfNames() },
            { _ = try await $0.keyVersion(0) }, { _ = try await $0.value(1) }, { _ = try await $0.fileSettings(1) },
            { _ = try await $0.isoFileIDs() }, { _ = try await $0.commitTransactionWithMAC() }, { _ = try await $0.signature() },
            { try await $0.authenticate(keyNumber: 0, key: .zero(.aes), method: .ev2First) },
            { try await $0.authenticate(keyNumber: 0, key: .zero(.aes), method: .lrpFirst) },
            { try await $0.authenticate(keyNumber: 0, key: .zero(.des), method: .legacy) },
            { try await $0.isoAuthenticate(keyNumber: 0, key: .zero(.des)) },
        ]
        for (index, call) in calls.enumerated() {
            var card = DESFireCard(transport: chip)
            // Two octets with 9100 are the ISO file of identifiers; everything else is refused.
            if answer == "9100", index == 2 || index == 6 { continue }
            if answer == "01029100", index == 6 { continue }
            await #expect(throws: (any Error).self, "call \(index)") { try await call(&card) }
        }
    }
}
