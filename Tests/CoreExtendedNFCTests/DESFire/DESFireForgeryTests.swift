// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Synchronization
import Testing
import VirtualCards

/// What is done to the answer of an authenticated call.
private enum Forgery: String, CaseIterable, Sendable {
    case macDropped, macFlipped, bitFlipped, byteLong, byteShort, empty
    /// The card's answer to the same call before.
    case replayed
    /// The card's answer to another call: right under its own counter.
    case otherCounter

    func applied(to answer: ResponseAPDU, same: ResponseAPDU?, other: ResponseAPDU?) -> ResponseAPDU {
        var data = answer.data
        switch self {
        case .macDropped: data = data.dropLast(8)
        case .macFlipped: data[data.index(before: data.endIndex)] ^= 0x80
        case .bitFlipped: data[data.startIndex] ^= 0x01
        case .byteLong: data.append(0)
        case .byteShort: data = data.dropLast(1)
        case .empty: data = Data()
        case .replayed: return same ?? answer
        case .otherCounter: return other ?? answer
        }
        return ResponseAPDU(data: data, statusWord: answer.statusWord)
    }
}

/// A card whose answer to one command is forged, once that is asked for.
private final class Forger: NFCTagTransport {
    private struct State {
        var isArmed = false
        var isInside = false
        var same: ResponseAPDU?
        var other: ResponseAPDU?
        var forged = 0
    }

    private let inner: any NFCTagTransport
    private let code: UInt8
    private let forgery: Forgery
    private let state = Mutex(State())

    init(_ inner: any NFCTagTransport, code: UInt8, _ forgery: Forgery) {
        (self.inner, self.code, self.forgery) = (inner, code, forgery)
    }

    var identifier: Data { inner.identifier }
    var forged: Int { state.withLock { $0.forged } }
    func arm() { state.withLock { $0.isArmed = true } }
    func send(_ data: Data) async throws -> Data { try await inner.send(data) }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let answer = try await inner.sendAPDU(apdu)
        return state.withLock { state in
            // Of an answer in several frames it is the last that bears the MAC.
            if apdu.octets[1] != 0xAF { state.isInside = apdu.octets[1] == code }
            guard answer.statusWord == 0x9100 || answer.statusWord == 0x9190 else { return answer }
            guard state.isInside else {
                if !state.isArmed, answer.data.count >= 8 { state.other = answer }
                return answer
            }
            guard state.isArmed else {
                state.same = answer
                return answer
            }
            state.forged += 1
            return forgery.applied(to: answer, same: state.same, other: state.other)
        }
    }
}

/// No authenticated call of the library succeeds with an answer that is not the card's to it: every call, every channel with a MAC.
@Suite struct DESFireForgeryTests {
    struct Call: Sendable, CustomTestStringConvertible {
        var name: String
        /// The command whose answer is forged.
        var code: UInt8
        /// The key that may do it.
        var key: UInt8 = 3
        var isEV2 = false
        /// The call, made in a first round as it should be, in a second with the forged answer.
        var run: @Sendable (inout DESFireCard, UInt8) async throws -> Void
        var testDescription: String { name }
    }

    private static let rights = DESFireAccessRights(read: .key(1), write: .key(2), readWrite: .key(3), change: .key(0))

    static let calls: [Call] = [
        Call(name: "readRecords, MAC", code: 0xBB) { card, round in
            if round == 0 {
                try await card.writeRecord(11, Data(repeating: 1, count: 24))
                try await card.commitTransaction()
            }
            _ = try await card.readRecords(11)
        },
        Call(name: "readRecords, enciphered", code: 0xBB) { card, round in
            if round == 0 {
                try await card.writeRecord(12, Data(repeating: 1, count: 24))
                try await card.commitTransaction()
            }
            _ = try await card.readRecords(12)
        },
        Call(name: "read, plain file", code: 0xBD) { card, _ in _ = try await card.read(1, length: 8) },
        Call(name: "read, chained", code: 0xBD) { card, _ in _ = try await card.read(3, length: 150) },
        Call(name: "write, chained", code: 0x3D) { card, round in
            try await card.write(2, Data(repeating: round, count: 150))
        },
        Call(name: "writeRecord", code: 0x3B) { card, _ in try await card.writeRecord(14, Data(repeating: 1, count: 24)) },
        Call(name: "updateRecord", code: 0xDB, isEV2: true) { card, round in
            if round == 0 {
                try await card.writeRecord(11, Data(repeating: 1, count: 24))
                try await card.commitTransaction()
            }
            try await card.updateRecord(11, record: 0, Data([1, 2]))
        },
        Call(name: "clearRecords", code: 0xEB) { card, round in
            if round == 1 { try await card.abortTransaction() }
            try await card.clearRecords(11)
        },
        Call(name: "credit", code: 0x0C) { card, _ in try await card.credit(8, 5) },
        Call(name: "debit", code: 0xDC) { card, _ in try await card.debit(9, 5) },
        Call(name: "limitedCredit", code: 0x1C) { card, _ in
            try await card.debit(9, 5)
            try await card.commitTransaction()
            try await card.limitedCredit(9, 2)
        },
        Call(name: "abortTransaction", code: 0xA7) { card, _ in
            try await card.credit(9, 5)
            try await card.abortTransaction()
        },
        Call(name: "version", code: 0x60) { card, _ in _ = try await card.version() },
        Call(name: "freeMemory", code: 0x6E) { card, _ in _ = try await card.freeMemory() },
        Call(name: "isoFileIDs", code: 0x61) { card, _ in _ = try await card.isoFileIDs() },
        Call(name: "createFile", code: 0xCD, key: 0) { card, round in
            try await card.createFile(
                DESFireFileParameters(
                    number: 20 + round, kind: .standard(size: 8), communication: .maced, accessRights: rights))
        },
        Call(name: "deleteFile", code: 0xDF, key: 0) { card, round in try await card.deleteFile(1 + round) },
        Call(name: "changeFileSettings", code: 0x5F, key: 0) { card, _ in
            try await card.changeFileSettings(1, communication: .maced, accessRights: rights)
        },
        Call(name: "changeKeySettings", code: 0x54, key: 0) { card, _ in try await card.changeKeySettings(0x0F) },
        Call(name: "changeKey, another's", code: 0xC4, key: 0) { card, round in
            let cipher = try await card.keySettings().cipher
            let (old, new) = (
                try DESFireKey(cipher, (0..<cipher.keyLength).map { UInt8($0 + 2) }), DESFireKey.zero(cipher)
            )
            // The old one is what the layout says, whichever setting it is.
            let first = try DESFireKey(
                cipher, (0..<cipher.keyLength).map { UInt8(truncatingIfNeeded: 0x11 &+ $0 &* 0x1F) ^ 2 << 4 })
            try await card.changeKey(2, to: round == 0 ? old : new, from: round == 0 ? first : old)
        },
        Call(name: "initializeKeySet", code: 0x56, key: 0, isEV2: true) { card, round in
            try await card.initializeKeySet(1 + round, cipher: .aes)
        },
        Call(name: "commitReaderID", code: 0xC8, key: 0, isEV2: true) { card, round in
            if round == 0 {
                try await card.createFile(
                    DESFireFileParameters(
                        number: 20, kind: .transactionMAC(key: .zero(.aes)), communication: .plain,
                        accessRights: DESFireAccessRights(rawValue: 0xE0F0)))
            }
            _ = try await card.commitReaderID(Data(repeating: 0x20 + round, count: 16))
        },
        Call(name: "finalizeKeySet", code: 0x57, key: 0, isEV2: true) { card, round in
            try await card.initializeKeySet(1 + round, cipher: .aes)
            try await card.finalizeKeySet(1 + round, version: 1)
        },
    ]

    @Test(arguments: DESFireSetting.all.filter { $0.method != .legacy }, calls)
    func aForgedAnswerIsAnErrorAndEndsTheSession(_ setting: DESFireSetting, _ call: Call) async throws {
        if call.isEV2, setting.method != .ev2First { return }
        // An application of DES keys calls them two-key triple DES, which is a setting of its own.
        if call.code == 0xC4, setting.cipher == .des { return }
        for forgery in Forgery.allCases {
            // In EV2 a plain file has no MAC; EV1 has one on every answer.
            if setting.method == .ev2First, call.name == "read, plain file" { continue }
            let transport = Forger(try setting.transport(), code: call.code, forgery)
            var card = try await setting.card(over: transport, key: call.key)
            _ = try await card.keyVersion(0)
            do {
                try await call.run(&card, 0)
            } catch NFCError.desfireError(let status) where status == .illegalCommand || status == .parameterError {
                // The card has no such command in this generation.
                continue
            }
            transport.arm()
            await #expect(throws: (any Error).self, "\(setting) \(call.name) \(forgery)") { try await call.run(&card, 1) }
            #expect(transport.forged > 0, "\(setting) \(call.name) \(forgery): nothing was forged")
            await #expect(throws: NFCError.secureMessagingError(""), "\(setting) \(call.name) \(forgery)") {
                try await card.fileIDs()
            }
        }
    }

    /// What the card's master key is needed for.
    static let cardCalls: [Call] = [
        Call(name: "createApplication", code: 0xCA) { card, round in
            try await card.createApplication(DESFireApplicationParameters(identifier: Data([1, 0, round]), keyCount: 1))
        },
        Call(name: "deleteApplication, from outside", code: 0xDA) { card, round in
            try await card.createApplication(DESFireApplicationParameters(identifier: Data([1, 0, round]), keyCount: 1))
            try await card.deleteApplication(Data([1, 0, round]))
        },
        Call(name: "setConfiguration", code: 0x5C) { card, _ in try await card.setConfiguration(option: 0, Data([0])) },
        Call(name: "format", code: 0xFC) { card, _ in try await card.format() },
    ]

    @Test(arguments: [DESFireAuthentication.aes, .ev2First], cardCalls)
    func aForgedAnswerToACommandOfTheWholeCardIsAnError(_ method: DESFireAuthentication, _ call: Call) async throws {
        let key = try DESFireKey(.aes, (0..<16).map { UInt8($0 + 0x51) })
        let layout = "picc aes 5152535455565758595A5B5C5D5E5F60\napp F00001 aes keys 1"
        for forgery in Forgery.allCases {
            let plain = VirtualCardTransport(
                try VirtualCardCatalog.make(VirtualCardSpecification(kind: "desfire", arguments: ["--layout", layout])))
            let transport = Forger(plain, code: call.code, forgery)
            var card = DESFireCard(transport: transport)
            try await card.selectApplication(Data([0, 0, 0]))
            try await card.authenticate(keyNumber: 0, key: key, method: method)
            _ = try await card.keyVersion(0)
            try await call.run(&card, 0)
            transport.arm()
            await #expect(throws: (any Error).self, "\(method) \(call.name) \(forgery)") { try await call.run(&card, 1) }
            #expect(transport.forged > 0, "\(method) \(call.name) \(forgery): nothing was forged")
            await #expect(throws: NFCError.secureMessagingError(""), "\(method) \(call.name) \(forgery)") {
                try await card.applicationIDs()
            }
        }
    }

    // Nothing protects what a card answers once its session's key is gone, so that nothing may stand there.
    @Test(arguments: DESFireSetting.all)
    func theAnswerToAChangeOfTheKeyInUseIsEmpty(_ setting: DESFireSetting) async throws {
        let isArmed = Mutex(false)
        let transport = Interceptor(try setting.transport()) { command, answer in
            guard command[1] == 0xC4, isArmed.withLock({ $0 }), answer.statusWord == 0x9100 else { return answer }
            return ResponseAPDU(data: answer.data + Data(repeating: 0xA5, count: 8), statusWord: 0x9100)
        }
        var card = try await setting.card(over: transport, key: 0)
        try await card.changeKey(0, to: try setting.key(2))
        #expect(card.session == nil)
        try await card.authenticate(keyNumber: 0, key: try setting.key(2), method: setting.method)
        isArmed.withLock { $0 = true }
        await #expect(throws: NFCError.secureMessagingError("")) { try await card.changeKey(0, to: try setting.key(3)) }
        await #expect(throws: NFCError.secureMessagingError("")) { try await card.fileIDs() }
    }

    @Test func theAnswerToARolledKeySetIsEmpty() async throws {
        let setting = DESFireSetting.all[8]
        let transport = Interceptor(try setting.transport()) { command, answer in
            guard command[1] == 0x55, answer.statusWord == 0x9100 else { return answer }
            return ResponseAPDU(data: answer.data + Data(repeating: 0xA5, count: 8), statusWord: 0x9100)
        }
        var card = try await setting.card(over: transport, key: 0)
        try await card.initializeKeySet(1, cipher: .aes)
        try await card.finalizeKeySet(1, version: 9)
        await #expect(throws: NFCError.secureMessagingError("")) { try await card.rollKeySet(1) }
        await #expect(throws: NFCError.secureMessagingError("")) { try await card.fileIDs() }
    }

    struct TagCall: Sendable, CustomTestStringConvertible {
        var name: String
        var code: UInt8
        var run: @Sendable (inout NTAG424Card, UInt8) async throws -> Void
        var testDescription: String { name }
    }

    static let tagCalls: [TagCall] = [
        TagCall(name: "read", code: 0xAD) { card, _ in _ = try await card.read(3, length: 40, mode: .enciphered) },
        TagCall(name: "write", code: 0x8D) { card, round in
            try await card.write(3, Data(repeating: round, count: 40), mode: .enciphered)
        },
        TagCall(name: "fileSettings", code: 0xF5) { card, _ in _ = try await card.fileSettings(2) },
        TagCall(name: "changeFileSettings", code: 0x5F) { card, _ in
            try await card.changeFileSettings(
                2, communication: .plain, accessRights: DESFireAccessRights(rawValue: 0xEEE0))
        },
        TagCall(name: "keyVersion", code: 0x64) { card, _ in _ = try await card.keyVersion(1) },
        TagCall(name: "cardUID", code: 0x51) { card, _ in _ = try await card.cardUID() },
        TagCall(name: "version", code: 0x60) { card, _ in _ = try await card.version() },
        TagCall(name: "signature", code: 0x3C) { card, _ in _ = try await card.signature() },
        TagCall(name: "readCounter", code: 0xF6) { card, _ in _ = try await card.readCounter(2) },
        TagCall(name: "changeKey, another's", code: 0xC4) { card, round in
            let keys = try (0..<3).map { first in try DESFireKey(.aes, [UInt8](repeating: UInt8(first), count: 16)) }
            try await card.changeKey(2, to: keys[Int(round) + 1], from: keys[Int(round)])
        },
    ]

    @Test(arguments: [DESFireAuthentication.ev2First, .lrpFirst], tagCalls)
    func aForgedAnswerOfATagIsAnErrorAndEndsTheSession(_ method: DESFireAuthentication, _ call: TagCall) async throws {
        for forgery in Forgery.allCases {
            let tag = VirtualCardTransport(
                try VirtualCardCatalog.make(
                    VirtualCardSpecification(reference: "ntag424\(method == .lrpFirst ? "?lrp" : "")")))
            let transport = Forger(tag, code: call.code, forgery)
            var card = NTAG424Card(transport: transport)
            try await card.selectApplication()
            try await card.authenticate(keyNumber: 0, key: .zero(.aes), method: method)
            // The proprietary file belongs to keys 2 and 3.
            try await card.changeFileSettings(
                3, communication: .enciphered, accessRights: DESFireAccessRights(rawValue: 0x0000))
            try await call.run(&card, 0)
            transport.arm()
            await #expect(throws: (any Error).self, "\(method) \(call.name) \(forgery)") { try await call.run(&card, 1) }
            #expect(transport.forged > 0, "\(method) \(call.name) \(forgery): nothing was forged")
            await #expect(throws: NFCError.secureMessagingError(""), "\(method) \(call.name) \(forgery)") {
                try await card.keyVersion(0)
            }
        }
    }
}
