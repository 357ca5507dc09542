// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Replay
import SessionSupport
import TagTransport
import TestSupport
import Testing
import TraceDecoding
import TraceFile
import Tracing
import VirtualCards

/// A session with every command of a card in one channel, as a program would have it.
struct DESFireStory: Sendable, CustomTestStringConvertible {
    var generation: String
    var cipher: DESFireCipher
    var method: DESFireAuthentication
    var framing = DESFireFraming.isoWrapped

    static let all = [
        DESFireStory(generation: "d40", cipher: .des, method: .legacy),
        DESFireStory(generation: "d40", cipher: .twoKeyTripleDES, method: .legacy),
        DESFireStory(generation: "ev1", cipher: .des, method: .iso),
        DESFireStory(generation: "ev1", cipher: .twoKeyTripleDES, method: .iso),
        DESFireStory(generation: "ev1", cipher: .threeKeyTripleDES, method: .iso),
        DESFireStory(generation: "ev1", cipher: .aes, method: .aes),
        DESFireStory(generation: "ev2", cipher: .aes, method: .aes),
        DESFireStory(generation: "ev3", cipher: .aes, method: .ev2First),
    ]

    var testDescription: String { "\(generation) \(cipher.rawValue) \(method.rawValue)" }
    private var isEV2: Bool { method == .ev2First }
    private var hasUpdateRecord: Bool { generation == "ev2" || generation == "ev3" }
    private static let application = Data([0xF0, 0x00, 0x01])

    func key(_ number: UInt8) throws -> DESFireKey {
        try DESFireKey(cipher, (0..<cipher.keyLength).map { UInt8(truncatingIfNeeded: 0x11 &+ $0 &* 0x1F) ^ number << 4 })
    }

    func transport() throws -> VirtualCardTransport {
        var lines = ["app F00001 \(cipher.rawValue) keys 4"]
        for number in UInt8(0)..<4 { lines.append("key \(number) \(Hex.encode(try key(number).octets))") }
        for (index, kind) in ["std 200", "backup 200", "value -100..10000 500", "linear 24x5", "cyclic 24x4"].enumerated() {
            for (offset, mode) in ["plain", "mac", "full"].enumerated() {
                lines.append(
                    "file \(3 * index + offset + 1) \(kind) \(mode) 1230\(kind.hasPrefix("value") ? " limited" : "")")
            }
        }
        return VirtualCardTransport(
            try VirtualCardCatalog.make(
                VirtualCardSpecification(
                    kind: "desfire", arguments: ["--generation", generation, "--layout", lines.joined(separator: "\n")])))
    }

    /// - Returns: all that was read, in order.
    func run(over transport: any NFCTagTransport) async throws -> Data {
        var read = Data()
        var card = DESFireCard(transport: transport, framing: framing)
        read += try await card.version().uid
        read += try await card.applicationIDs().reduce(Data(), +)
        if generation != "d40" { read.append(UInt8(truncatingIfNeeded: try await card.freeMemory())) }
        try await card.selectApplication(Self.application)
        try await card.authenticate(keyNumber: 3, key: try key(3), method: method)
        read += try await files(&card)
        read += try await counters(&card)
        read += Data(try await card.fileIDs())
        read.append(try await card.keySettings().settings)
        read.append(try await card.keyVersion(1))
        if generation != "d40" { read += try await card.cardUID() }
        // Another key in the middle of the session, then the application again.
        try await card.authenticate(keyNumber: 2, key: try key(2), method: method)
        try await card.write(3, Data(repeating: 0xEE, count: 20))
        if isEV2 {
            try await card.authenticate(keyNumber: 1, key: try key(1), method: .ev2NonFirst)
            read += try await card.read(3, length: 20)
        }
        try await card.selectApplication(Self.application)
        try await card.authenticate(keyNumber: 1, key: try key(1), method: method)
        read += try await card.read(3, length: 20)
        // The card refuses, which ends the session.
        if (try? await card.write(3, Data([1]))) != nil { read.append(0xFF) }
        try await card.selectApplication(Self.application)
        try await administration(&card)
        if generation != "d40" { read += try await byISOCommands(&card) }
        try await wholeCard(&card)
        return read
    }

    private func files(_ card: inout DESFireCard) async throws -> Data {
        var read = Data()
        for file in UInt8(1)...3 {
            try await card.write(file, offset: 7, Data((0..<150).map { $0 &+ file }))
            read += try await card.read(file, offset: 7, length: 150) + card.read(file, offset: 160)
            read += try await card.read(file, length: 3)
            read.append(UInt8(truncatingIfNeeded: try await card.fileSettings(file).fileSize ?? 0))
        }
        for file in UInt8(4)...6 {
            try await card.write(file, Data(repeating: file, count: 70))
            try await card.commitTransaction()
            try await card.write(file, Data(repeating: 0, count: 7))
            try await card.abortTransaction()
            read += try await card.read(file, length: 70)
        }
        return read
    }

    private func counters(_ card: inout DESFireCard) async throws -> Data {
        var read = Data()
        for file in UInt8(7)...9 {
            try await card.debit(file, 50)
            try await card.commitTransaction()
            try await card.limitedCredit(file, 30)
            try await card.commitTransaction()
            try await card.credit(file, 3)
            try await card.commitTransaction()
            read.append(UInt8(truncatingIfNeeded: try await card.value(file)))
        }
        for file in UInt8(10)...15 {
            try await card.writeRecord(file, Data((0..<24).map { $0 &+ file }))
            try await card.commitTransaction()
            if hasUpdateRecord {
                try await card.updateRecord(file, record: 0, offset: 4, Data([0xAA, 0xBB]))
                try await card.commitTransaction()
            }
            read += try await card.readRecords(file)
            try await card.clearRecords(file)
            try await card.commitTransaction()
        }
        return read
    }

    private func administration(_ card: inout DESFireCard) async throws {
        try await card.authenticate(keyNumber: 0, key: try key(0), method: method)
        let rights = DESFireAccessRights(read: .key(1), write: .key(2), readWrite: .key(3), change: .key(0))
        for kind in [
            DESFireFileParameters.Kind.standard(size: 10), .backup(size: 20),
            .value(lower: -5, upper: 5, initial: 1, limitedCredit: true), .linearRecord(size: 8, most: 2),
            .cyclicRecord(size: 8, most: 3),
        ] {
            try await card.createFile(
                DESFireFileParameters(number: 0, kind: kind, communication: .enciphered, accessRights: rights))
            try await card.deleteFile(0)
        }
        try await card.changeFileSettings(1, communication: .maced, accessRights: rights)
        try await card.changeKey(1, to: try key(2), from: try key(1))
        _ = try await card.keyVersion(1)
        try await card.changeKey(1, to: try key(1), from: try key(2))
        try await card.changeKeySettings(0x0B)
        try await card.changeKey(0, to: try key(3))
        try await card.authenticate(keyNumber: 0, key: try key(3), method: method)
        _ = try await card.fileIDs()
    }

    /// Selection, reading, and where the channel is EV1's the authentication too, by the commands of ISO/IEC 7816-4.
    private func byISOCommands(_ card: inout DESFireCard) async throws -> Data {
        try await card.selectApplication(Self.application)
        guard method == .iso || method == .aes else { return Data() }
        try await card.isoAuthenticate(keyNumber: 3, key: try key(3))
        let settings = try await card.fileSettings(3)
        try await card.write(3, Data(repeating: 0x5A, count: 40))
        return try await card.read(3, length: 40) + [UInt8(truncatingIfNeeded: settings.fileSize ?? 0)]
    }

    private func wholeCard(_ card: inout DESFireCard) async throws {
        try await card.selectApplication(Data([0, 0, 0]))
        // The card's own master key is of zeros.
        try await card.authenticate(keyNumber: 0, key: .zero(.des), method: generation == "d40" ? .legacy : .iso)
        let identifier = Data([1, 2, 3])
        try await card.createApplication(DESFireApplicationParameters(identifier: identifier, cipher: cipher, keyCount: 3))
        try await card.selectApplication(identifier)
        try await card.authenticate(keyNumber: 0, key: .zero(cipher), method: method)
        try await card.deleteApplication(identifier)
        _ = try await card.applicationIDs()
        try await card.authenticate(keyNumber: 0, key: .zero(.des), method: generation == "d40" ? .legacy : .iso)
        if generation != "d40" {
            let new = try DESFireKey(.aes, (0..<16).map { UInt8($0) })
            try await card.changeKey(0, to: new)
            try await card.authenticate(keyNumber: 0, key: new, method: .aes)
        }
        try await card.format()
        _ = try await card.applicationIDs()
    }
}

/// NTAG 424 DNA in its two channels.
struct NTAGStory: Sendable, CustomTestStringConvertible {
    var method: DESFireAuthentication
    static let all = [NTAGStory(method: .ev2First), NTAGStory(method: .lrpFirst)]
    var testDescription: String { method.rawValue }

    func transport() throws -> VirtualCardTransport {
        VirtualCardTransport(
            try VirtualCardCatalog.make(VirtualCardSpecification(reference: "ntag424\(method == .lrpFirst ? "?lrp" : "")")))
    }

    func run(over transport: any NFCTagTransport) async throws -> Data {
        var read = Data()
        let next: DESFireAuthentication = method == .lrpFirst ? .lrpNonFirst : .ev2NonFirst
        var card = NTAG424Card(transport: transport)
        read += try await card.version().uid + card.signature()
        try await card.selectApplication()
        read.append(UInt8(truncatingIfNeeded: try await card.fileSettings(2).fileSize))
        try await card.authenticate(keyNumber: 0, key: .zero(.aes), method: method)
        read += try await card.cardUID() + card.signature()
        read.append(try await card.keyVersion(1))
        try await card.changeFileSettings(
            3, communication: .enciphered, accessRights: DESFireAccessRights(rawValue: 0x0000))
        try await card.write(3, offset: 3, Data((0..<100).map { $0 }))
        read += try await card.read(3, offset: 3, length: 100)
        read += try await card.read(2, length: 40)
        read.append(UInt8(truncatingIfNeeded: try await card.readCounter(2)))
        let new = try DESFireKey(.aes, (0..<16).map { UInt8($0 + 3) }, version: 7)
        try await card.changeKey(1, to: new, from: .zero(.aes))
        try await card.authenticate(keyNumber: 1, key: new, method: next)
        read.append(try await card.keyVersion(1))
        try await card.authenticate(keyNumber: 0, key: .zero(.aes), method: method)
        try await card.changeKey(0, to: new)
        try await card.authenticate(keyNumber: 0, key: new, method: method)
        read += try await card.read(3, length: 3)
        return read
    }
}

@Suite struct DESFireEverythingTests {
    @Test(arguments: DESFireStory.all, [DESFireFraming.isoWrapped, .native])
    func everyCommandIsShownOpenedAndReplayed(_ story: DESFireStory, framing: DESFireFraming) async throws {
        var story = story
        story.framing = framing
        let framed = story
        try await recordShowReplay(of: framed.transport()) { try await framed.run(over: $0) }
    }

    @Test(arguments: NTAGStory.all) func everyCommandOfANTAGIsShownOpenedAndReplayed(_ story: NTAGStory) async throws {
        try await recordShowReplay(of: story.transport()) { try await story.run(over: $0) }
    }

    private func recordShowReplay(
        of card: VirtualCardTransport, _ run: @escaping @Sendable (any NFCTagTransport) async throws -> Data
    ) async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let wrapped = recording.wrap(card)
        let read = try await recording.run { try await run(wrapped) }
        try recording.close()

        let trace = try Trace.load(path: folder("a.pcapng"))
        let secrets = try SecretStore.load(forTrace: folder("a.pcapng")).store
        var decoder = TraceDecoder(interfaces: trace.interfaces, secrets: secrets)
        var closed = TraceDecoder(interfaces: trace.interfaces)
        var opened = 0
        for row in trace.rows {
            let shown = decoder.push(row)
            let wrong = shown.annotations.filter { $0.severity == .error }
            #expect(
                wrong.isEmpty || shown.summary.hasPrefix("91AE"),
                "exchange \(row.packetID ?? 0) \(shown.kind) \(shown.summary): \(wrong.map(\.text)) \(Hex.encode(row.body))")
            #expect(
                shown.opening != .sealed && shown.opening != .failed,
                "exchange \(row.packetID ?? 0) \(shown.kind) \(shown.summary)")
            #expect(!shown.summary.isEmpty && !shown.summary.hasPrefix("command "), "frame \(row.frame)")
            if shown.opening == .opened { opened += 1 }
            let bare = closed.push(row)
            #expect(!bare.annotations.contains { $0.code == "failed" }, "closed: exchange \(row.packetID ?? 0) \(bare.summary)")
        }
        #expect(opened > 20)
        #expect(decoder.authentication.checked == decoder.authentication.held)

        let again = try await Replay(of: folder("a.pcapng")).run { try await run($0) }
        #expect(again == read)
    }
}
