// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

/// What must be true of every message that a set of grammars reads, whatever its octets: the leaves cover each buffer once,
/// and what was read is written again as it was.
///
/// The frames of the grammars' examples are changed at random, from a seed, so that a breach can be found again.
public struct GrammarLaws: Sendable {
    /// A message that broke a law.
    public struct Breach: Sendable, Equatable, CustomStringConvertible {
        public let what: String
        public let frame: [UInt8]
        /// The kind of message, `iso7816.Command`.
        public let entry: String
        /// How many messages had been read before it.
        public let turn: Int
        public var description: String { "\(entry) \(Hex.encode(frame)), message \(turn + 1): \(what)" }
    }

    private let program: Program
    private let seeds: [(octets: [UInt8], entry: Int, isRequest: Bool)]
    private let secrets: [String: [UInt8]]

    /// - Parameters:
    ///   - frames: more frames to begin from than those of the examples, each with its kind of message.
    ///   - secrets: what the decoder is given, by the grammars' names.
    public init(
        _ program: Program, frames: [(octets: [UInt8], entry: Int, isRequest: Bool)] = [], secrets: [String: [UInt8]] = [:]
    ) {
        self.program = program
        seeds = program.exampleFrames.filter { $0.entry >= 0 } + frames
        self.secrets = secrets
    }

    /// Reads each frame as it is, then changed ones, then noise, `count` messages in all.
    ///
    /// - Returns: the first breach, or nil.
    public func firstBreach(among count: Int, seed: UInt64 = 1) -> Breach? {
        guard !seeds.isEmpty else { return nil }
        var dice = GrammarDice(state: seed)
        var decoder = Decoder(program, secrets: secrets)
        let entries = program.entryNames.compactMap { program.entry(named: $0) }
        for turn in 0..<count {
            let isNoise = turn >= seeds.count && turn % 2 == 1 && !entries.isEmpty
            let start = seeds[turn / 2 % seeds.count]
            let plain = turn < seeds.count ? seeds[turn] : start
            let entry = isNoise ? entries[turn / 2 % entries.count] : plain.entry
            let frame = isNoise ? dice.noise() : turn < seeds.count ? plain.octets : dice.changed(plain.octets)
            let outcome =
                isNoise || plain.isRequest
                ? decoder.push(request: frame, entry: entry, exchange: turn)
                : decoder.push(response: frame, entry: entry, exchange: turn)
            if let what = Self.breach(&decoder, outcome, frame) {
                return Breach(what: what, frame: frame, entry: program.roots[entry].name, turn: turn)
            }
        }
        return nil
    }

    /// What a push broke; nil when nothing.
    public static func breach(_ decoder: inout Decoder, _ outcome: Decoder.Outcome, _ frame: [UInt8]) -> String? {
        var isParent = [Bool](repeating: false, count: outcome.spans.count)
        for span in outcome.spans {
            let parent = Int(decoder.spans[span].parent)
            if outcome.spans.contains(parent) { isParent[parent - outcome.spans.lowerBound] = true }
        }
        var covered: [Int: [(start: UInt32, end: UInt32)]] = [:]
        for span in outcome.spans where !isParent[span - outcome.spans.lowerBound] {
            let here = decoder.spans[span]
            covered[Int(here.buffer), default: []].append((here.startBit, here.startBit &+ here.bitCount))
        }
        let read = Set(outcome.spans.map { Int(decoder.spans[$0].buffer) })
        for buffer in outcome.buffers where read.contains(buffer) {
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
        guard let root = outcome.spans.first, let draft = decoder.draft(of: root) else { return "nothing was read" }
        let written = decoder.encode(draft)
        return written == frame ? nil : "written again as \(written.map { Hex.encode($0) } ?? "nothing")"
    }
}

/// A source of numbers that gives the same ones in every run.
package struct GrammarDice: RandomNumberGenerator {
    package var state: UInt64

    package init(state: UInt64) { self.state = state }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    package mutating func noise() -> [UInt8] {
        (0..<Int.random(in: 0...60, using: &self)).map { _ in UInt8.random(in: 0...255, using: &self) }
    }

    /// `octets` with one to four changes: bits, lengths, cuts, repeats.
    package mutating func changed(_ octets: [UInt8]) -> [UInt8] {
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
