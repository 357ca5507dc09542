// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing

@testable import TraceFile

/// Damaged copies of good files. A trap ends the whole test run, so that each test here asserts most by coming back.
@Suite struct HostileInputTests {
    /// `TAPDECK_MUTATIONS` sets the number of mutated copies. From 100,000 on, for a release build, long files too are
    /// cut at every octet.
    static let mutations = ProcessInfo.processInfo.environment["TAPDECK_MUTATIONS"].flatMap { Int($0) } ?? 4_000

    /// Our own file, the same in the other byte order, and samples of others where they are.
    static func seeds() throws -> [[UInt8]] {
        let own = try Sample.octets()
        var seeds = [own, swapByteOrder(own), own + swapByteOrder(own)]
        if let folder = SharedData.folder?.appendingPathComponent("specs/trace-samples") {
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() where name.hasSuffix(".pcapng")
            {
                seeds.append([UInt8](try Data(contentsOf: folder.appendingPathComponent(name))))
            }
        }
        return seeds
    }

    /// Reads everything, and checks what must hold of any input.
    private func exercise(_ octets: [UInt8]) {
        guard let trace = try? Trace(octets: octets) else { return }
        let body = trace.rows.reduce(0) { $0 + $1.body.count }
        #expect(body <= octets.count)
        #expect(trace.interfaces.count <= octets.count / 20)
        #expect(trace.rows.allSatisfy { trace.interfaces.indices.contains($0.interface) })
        #expect(zip(trace.rows, trace.rows.dropFirst()).allSatisfy { $0.frame < $1.frame })
        if let damage = trace.damage {
            #expect(damage.offset <= UInt64(octets.count))
            #expect(damage.rows == trace.rows.count)
            #expect(!damage.description.isEmpty)
        }
        for row in trace.rows.prefix(50) where row.dissector == "json" { _ = MetaRow(body: row.body)?.text }
    }

    @Test func everySeedCutAtEveryByteIsReadUpToTheCut() throws {
        for octets in try Self.seeds() {
            let whole = try Trace(octets: octets)
            var last = 0
            for length in stride(from: 1, to: octets.count, by: Self.mutations < 100_000 && octets.count > 2_000 ? 37 : 1) {
                let trace = try Trace(octets: [UInt8](octets[..<length]))
                #expect(trace.rows.count >= last && trace.rows.elementsEqual(whole.rows.prefix(trace.rows.count)))
                #expect(trace.damage.map { $0.kind == .cutShort } ?? true)
                last = trace.rows.count
            }
        }
    }

    @Test func mutatedCopiesEndInRowsOrInDamage() throws {
        let seeds = try Self.seeds()
        var random = SplitMix(state: 0x7ADE)
        for count in 0..<Self.mutations { exercise(random.mutate(seeds[count % seeds.count])) }
    }

    @Test func mutatedProxmarkTracesEndInRowsOrInDamage() throws {
        var random = SplitMix(state: 0x93)
        var seeds: [[UInt8]] = [[0, 0, 0, 0, 0x10, 0, 1, 0, 0x26, 0, 9, 0, 0, 0, 0x10, 0, 2, 0x80, 4, 0, 0xC0]]
        if SharedData.isPresent {
            for capture in Proxmark3CaptureTests.captures {
                guard let path = Proxmark3CaptureTests.path(capture.name) else { continue }
                seeds.append([UInt8](try Data(contentsOf: URL(fileURLWithPath: path))))
            }
        }
        let protocols: [RFProtocol?] = RFProtocol.allCases.map { $0 } + [nil]
        for count in 0..<Self.mutations / 4 {
            let octets = random.mutate(seeds[count % seeds.count])
            let imported = Proxmark3Importer.importTrace(octets, protocol: protocols[count % protocols.count], name: "x")
            #expect(imported.trace.rows.count <= octets.count / 8 + imported.summary.count)
            #expect(imported.trace.rows.allSatisfy { $0.body.count <= 0x7FFF + 4 })
        }
    }

    @Test func mutatedTextOfSecretsAndJSONIsReadOrRefused() throws {
        var random = SplitMix(state: 0x5EC)
        let text = [UInt8]("mrz L898902C<369080619406236\ncan 123456\nbac.seed 0011\ndesfire aid 01F4A1 key 0 # x\n".utf8)
        for count in 0..<Self.mutations {
            let mutated = random.mutate(text)
            do throws(TraceFileError) {
                let lines = try SecretStore.load(text: String(decoding: mutated, as: UTF8.self)).lines
                #expect(lines.count <= mutated.count)
            } catch {
                guard case .malformedSecret(let line, let column) = error.code else { throw error }
                #expect(line >= 1 && column >= 1)
            }
            let json = random.mutate([UInt8](MetaRowTests.texts[count % MetaRowTests.texts.count].utf8))
            if let row = MetaRow(body: json) { #expect(MetaRow(body: row.body) == row) }
        }
    }

    @Test func aMutatedCompressedFileEnds() throws {
        let folder = try Folder()
        let octets = stored(try Sample.octets()[...])
        var random = SplitMix(state: 0x62)
        for _ in 0..<Self.mutations / 20 {
            let path = try folder.write(random.mutate(octets), "a.gz")
            guard let trace = try? Trace.load(path: path) else { continue }
            #expect(trace.rows.count < 10_000)
        }
    }
}

/// Steele, Lea and Flood's generator: the same copies in every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    /// A few changes: single bits and octets, numbers with meaning, pieces moved, doubled or cut out.
    mutating func mutate(_ octets: [UInt8]) -> [UInt8] {
        var copy = octets
        for _ in 0..<Int.random(in: 1...4, using: &self) where !copy.isEmpty {
            let place = Int.random(in: 0..<copy.count, using: &self)
            switch Int.random(in: 0..<7, using: &self) {
            case 0: copy[place] ^= 1 << UInt8.random(in: 0..<8, using: &self)
            case 1: copy[place] = UInt8.random(in: 0...255, using: &self)
            case 2:
                let words: [UInt32] = [0, 0xFFFF_FFFF, 0x7FFF_FFFF, 0x8000_0000, 12, 1 << 24, UInt32(copy.count)]
                let word = words.randomElement(using: &self) ?? 0
                let aligned = place & ~3
                if aligned + 4 <= copy.count { copy.replaceSubrange(aligned..<aligned + 4, with: littleEndian(word)) }
            case 3: copy.removeSubrange(place..<min(copy.count, place + Int.random(in: 1...64, using: &self)))
            case 4: copy.insert(contentsOf: copy[place..<min(copy.count, place + 200)], at: place)
            case 5: copy.removeLast(Int.random(in: 0...min(copy.count, 40), using: &self))
            default: copy.insert(contentsOf: (0..<4).map { _ in UInt8.random(in: 0...255, using: &self) }, at: place)
            }
        }
        return copy
    }
}
