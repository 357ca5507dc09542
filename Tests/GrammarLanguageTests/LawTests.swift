// SPDX-License-Identifier: MIT

import GrammarLanguage
import GrammarRuntime
import Octets
import Testing

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
