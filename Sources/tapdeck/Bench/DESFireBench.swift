// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import TagTransport
import TraceDecoding
import TraceFile
import Tracing
import VirtualCards

/// Authenticated, enciphered reads of a DESFire file with the card in this process, the cryptography of both sides in them; and what
/// recording and decoding the same reads costs.
enum DESFireBench {
    private struct Kind {
        var name: String
        var generation: String
        var cipher: DESFireCipher
        var method: DESFireAuthentication
    }

    private static let kinds = [
        Kind(name: "d40", generation: "d40", cipher: .twoKeyTripleDES, method: .legacy),
        Kind(name: "ev1-aes", generation: "ev1", cipher: .aes, method: .aes),
        Kind(name: "ev2", generation: "ev2", cipher: .aes, method: .ev2First),
    ]
    /// Octets in a read.
    private static let length = 32
    /// Reads behind one authentication: well below the 16 bits of a counter.
    private static let reads = 1_000
    /// Authentications in the recorded session.
    private static let recordedSessions = 10
    private static let application = Data([0xF0, 0x00, 0x01])

    static func run(_ report: BenchReport) async throws {
        for kind in kinds {
            let name = "desfire-\(kind.name)"
            let card = try transport(kind)
            try await session(kind, over: card)
            var sessions = 0
            let start = ContinuousClock.now
            while (ContinuousClock.now - start).microseconds < 2_000_000 {
                try await session(kind, over: card)
                sessions += 1
            }
            let microseconds = (ContinuousClock.now - start).microseconds / Double(sessions * reads)
            report.figure(name, 1_000_000 / microseconds, "reads/s")
            let share = try await Sampler.share(in: "libcrypto") {
                for _ in 0..<max(2, sessions / 2) { try await session(kind, over: card) }
            }
            if let share { report.figure("\(name)-libcrypto", share * 100, "%") }
            try await recordAndDecode(kind, name, bare: microseconds, report)
        }
    }

    private static func recordAndDecode(_ kind: Kind, _ name: String, bare: Double, _ report: BenchReport) async throws {
        let folder = NSTemporaryDirectory() + "tapdeck-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = "\(folder)/bench.pcapng"
        let recording = try Recording(to: path)
        let card = recording.wrap(try transport(kind))
        let start = ContinuousClock.now
        for _ in 0..<recordedSessions { try await recording.run("bench") { try await session(kind, over: card) } }
        let recorded = (ContinuousClock.now - start).microseconds / Double(recordedSessions * reads)
        try recording.close()
        report.figure("\(name)-record", recorded - bare, "us")
        report.figure("\(name)-decode", try decodedReads(path), "reads/s")
    }

    /// Reads a second opened and checked by the grammars out of a recorded session, the file's rows at hand, no text but the
    /// summaries.
    private static func decodedReads(_ path: String) throws -> Double {
        var reader = try TraceReader(path: path)
        var rows: [TraceRow] = []
        var embedded: [SecretRecord] = []
        while let item = reader.next() {
            switch item {
            case .row(let row): rows.append(row)
            case .secrets(let records): embedded += records
            case .header, .interface: break
            }
        }
        let secrets = try SecretStore.load(forTrace: path, session: reader.header?.session, embedded: embedded).store
        var decoder = TraceDecoder(interfaces: reader.interfaces, secrets: secrets)
        decoder.wantsFields = false
        let start = ContinuousClock.now
        var opened = 0
        var wrong: String?
        for row in rows {
            let decoded = decoder.push(row)
            if decoded.kind == .response, decoded.opening == .opened { opened += 1 }
            if wrong == nil, let failed = decoded.annotations.first(where: { $0.code == "failed" }) {
                wrong = "exchange \(row.packetID ?? 0), \(decoded.summary): \(failed.text)"
            }
        }
        let seconds = (ContinuousClock.now - start).microseconds / 1_000_000
        if let wrong { throw Failure(.notSo, wrong) }
        guard opened >= recordedSessions * reads else {
            throw Failure(.notSo, "of \(recordedSessions * reads) recorded reads \(opened) were opened")
        }
        return Double(recordedSessions * reads) / seconds
    }

    private static func key(_ kind: Kind) throws -> DESFireKey {
        try DESFireKey(kind.cipher, (0..<kind.cipher.keyLength).map { UInt8(truncatingIfNeeded: 0x11 &+ $0 &* 0x1F) })
    }

    private static func transport(_ kind: Kind) throws -> VirtualCardTransport {
        let layout = """
            app F00001 \(kind.cipher.rawValue) keys 2
            key 1 \(Hex.encode(try key(kind).octets))
            file 1 std \(length) full 1110
            """
        return VirtualCardTransport(
            try VirtualCardCatalog.make(
                VirtualCardSpecification(kind: "desfire", arguments: ["--generation", kind.generation, "--layout", layout])))
    }

    private static func session(_ kind: Kind, over transport: any NFCTagTransport) async throws {
        var card = DESFireCard(transport: transport)
        try await card.selectApplication(application)
        try await card.authenticate(keyNumber: 1, key: try key(kind), method: kind.method)
        for _ in 0..<reads {
            guard try await card.read(1, length: length, mode: .enciphered).count == length else {
                throw Failure(.notSo, "the bench's card gave another number of bytes")
            }
        }
    }
}
