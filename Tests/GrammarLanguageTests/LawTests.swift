// SPDX-License-Identifier: MIT

import GrammarLanguage
import GrammarRuntime
import Octets
import Testing

/// A source of numbers that gives the same ones in every run.
struct Dice: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// `octets` with one to four changes: bits, lengths, cuts, repeats.
    mutating func mutated(_ octets: [UInt8]) -> [UInt8] {
        var result = octets
        for _ in 0..<Int.random(in: 1...4, using: &self) {
            let place = result.isEmpty ? 0 : Int.random(in: 0..<result.count, using: &self)
            switch Int.random(in: 0..<7, using: &self) {
            case 0 where !result.isEmpty: result[place] ^= 1 << UInt8.random(in: 0..<8, using: &self)
            case 1 where !result.isEmpty: result[place] = [0x00, 0x7F, 0x80, 0x81, 0x84, 0xFF].randomElement(using: &self) ?? 0
            case 2 where !result.isEmpty: result.removeSubrange(place...)
            case 3: result.insert(UInt8.random(in: 0...255, using: &self), at: place)
            case 4 where !result.isEmpty: result.remove(at: place)
            case 5 where result.count < 2000: result += result[place...]
            default: result.append(UInt8.random(in: 0...255, using: &self))
            }
        }
        return result
    }
}

/// What must be true of every decoded frame, whatever its octets.
func breach(_ decoder: inout Decoder, _ outcome: Decoder.Outcome, _ frame: [UInt8]) -> String? {
    // Rule 3: leaves cover each buffer once.
    var covered: [Int: [(start: UInt32, end: UInt32)]] = [:]
    var parents = Set<Int32>()
    for span in outcome.spans { parents.insert(decoder.spans[span].parent) }
    for span in outcome.spans where !parents.contains(Int32(span)) {
        let here = decoder.spans[span]
        covered[Int(here.buffer), default: []].append((here.startBit, here.startBit + here.bitCount))
    }
    for buffer in outcome.buffers where decoder.spans[outcome.spans].contains(where: { Int($0.buffer) == buffer }) {
        var place: UInt32 = 0
        for piece in (covered[buffer] ?? []).filter({ $0.start != $0.end }).sorted(by: { $0.start < $1.start }) {
            if piece.start != place {
                return "buffer \(buffer): a gap or an overlap at bit \(place), the next leaf begins at \(piece.start)"
            }
            place = piece.end
        }
        if Int(place) != decoder.buffers[buffer].count * 8 {
            return "buffer \(buffer) ends at bit \(place) of \(decoder.buffers[buffer].count * 8)"
        }
    }
    // serialise(parse(b)) = b.
    guard let root = outcome.spans.first, let draft = decoder.draft(of: root) else { return "no span" }
    let written = decoder.encode(draft)
    if written != frame { return "written again as \(written.map { Hex.encode($0) } ?? "nothing")" }
    return nil
}

@Suite struct Laws {
    /// Every frame of every example, with the kind of message that it is.
    static let seeds: [(octets: [UInt8], entry: Int, isRequest: Bool)] = {
        let program = Shipped.set.program
        return program.exampleFrames
    }()

    @Test func everyMutatedFrameIsPartitionedAndWrittenAgainAsItWas() throws {
        var dice = Dice(state: 1)
        var decoder = Decoder(Shipped.set.program, secrets: ["bac.seed": try Hex.decode(AppendixD.seed)])
        try #require(!Self.seeds.isEmpty)
        for turn in 0..<20_000 {
            let seed = Self.seeds[turn % Self.seeds.count]
            let frame = turn < Self.seeds.count ? seed.octets : dice.mutated(seed.octets)
            let outcome =
                seed.isRequest
                ? decoder.push(request: frame, entry: seed.entry, exchange: turn)
                : decoder.push(response: frame, entry: seed.entry, exchange: turn)
            if let breach = breach(&decoder, outcome, frame) {
                Issue.record("\(breach), from \(Hex.encode(frame)), entry \(seed.entry)")
                return
            }
        }
    }

    @Test func noiseIsPartitionedUnderEveryKindOfMessage() {
        var dice = Dice(state: 2)
        var decoder = Decoder(Shipped.set.program)
        let entries = Shipped.set.program.entryNames.compactMap { Shipped.set.program.entry(named: $0) }
        for turn in 0..<20_000 {
            let frame = (0..<Int.random(in: 0...60, using: &dice)).map { _ in UInt8.random(in: 0...255, using: &dice) }
            let outcome = decoder.push(request: frame, entry: entries[turn % entries.count])
            if let breach = breach(&decoder, outcome, frame) {
                Issue.record("\(breach), from \(Hex.encode(frame)), entry \(entries[turn % entries.count])")
                return
            }
        }
    }

    @Test func whatIsWrittenReadsBackAsTheSameMessage() throws {
        var decoder = Decoder(Shipped.set.program)
        for seed in Self.seeds {
            // What a frame means depends on what came before it: both readings begin in the same state.
            let state = decoder.state
            _ = decoder.push(request: seed.octets, entry: seed.entry)
            let draft = try #require(decoder.draft(of: 0))
            let written = decoder.encode(draft)
            decoder.state = state
            _ = decoder.push(request: try #require(written), entry: seed.entry)
            #expect(decoder.draft(of: 0) == draft)
        }
    }

    @Test func aMessageFromValuesTakesTheShortestForm() throws {
        var decoder = Decoder(Shipped.set.program)
        let entry = try #require(Shipped.set.program.entry(named: "iso7816.Command"))
        let header: [String: [UInt8]] = [
            "cla.form": [0], "cla.chained": [0], "cla.sm": [0], "cla.channel": [0], "ins": [0xA4], "p1": [4], "p2": [0],
        ]
        var short = header
        short["data"] = [0x3F, 0x00]
        let third = decoder.encode(entry: entry, short)
        #expect(third.map { Hex.encode($0) } == "00A40400023F00")
        short["le"] = [0]
        let fourth = decoder.encode(entry: entry, short)
        #expect(fourth.map { Hex.encode($0) } == "00A40400023F0000")
        var long = header
        long["data"] = [UInt8](repeating: 1, count: 256)
        let extended = decoder.encode(entry: entry, long)
        #expect(extended.map { Hex.encode($0.prefix(8)) } == "00A4040000010001")
        let first = decoder.encode(entry: entry, header)
        #expect(first.map { Hex.encode($0) } == "00A40400")
        let wrong = decoder.encode(entry: entry, ["nothing": [0]])
        #expect(wrong == nil)
    }
}
