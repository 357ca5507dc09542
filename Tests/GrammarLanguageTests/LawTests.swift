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

@Suite struct Laws {
    /// Every frame of every example, with the kind of message that it is.
    static let seeds: [(octets: [UInt8], entry: Int, isRequest: Bool)] = {
        let program = Shipped.set.program
        return program.exampleFrames
    }()

    @Test func everyMutatedFrameIsPartitionedAndWrittenAgainAsItWas() throws {
        try #require(!Self.seeds.isEmpty)
        let laws = GrammarLaws(Shipped.set.program, secrets: ["bac.seed": try Hex.decode(AppendixD.seed)])
        let breach = laws.firstBreach(among: 20_000)
        #expect(breach == nil)
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
