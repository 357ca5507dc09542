// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import TraceFile

@Suite struct JoinedExchangeTests {
    private func split(_ text: String, _ habits: JoinedExchange.Habits = .init()) throws -> (String, JoinedExchange.Reason)? {
        guard let joined = JoinedExchange(try Hex.decode(text)[...], habits) else { return nil }
        return ("\(Hex.encode(joined.command))>\(Hex.encode(joined.answer))", joined.reason)
    }

    /// Octets, the two parts, and what told.
    static let cases: [(String, String, JoinedExchange.Reason)] = [
        // Case 1, without P3 and with the P3 of T=0.
        ("00220100 9000", "00220100>9000", .lengths),
        ("002C000100 63CA", "002C000100>63CA", .lengths),
        // Case 2S: less than asked for, all of it, refused, and with a Le of 256.
        ("00B2010C08 010203 6282", "00B2010C08>0102036282", .lengths),
        ("0084000008 4608F91988702212 9000", "0084000008>4608F919887022129000", .instruction),
        ("00B000000A 6C08", "00B000000A>6C08", .lengths),
        ("00B2010C00 70045F240331 9000", "00B2010C00>70045F2403319000", .lengths),
        ("9060000000 04010101001805 91AF", "9060000000>0401010100180591AF", .lengths),
        ("00A4000000 6F00 9000", "00A4000000>6F009000", .lengths),
        // Case 3S, by instruction, by class, by the status word.
        ("00A4000402 3F00 612F", "00A40004023F00>612F", .instruction),
        ("A0D6000003 FFFFFF 9000", "A0D6000003FFFFFF>9000", .instruction),
        ("04B0000002 AABB 9000", "04B0000002AABB>9000", .instruction),
        ("90BD000002 AABB 9100", "90BD000002AABB>9100", .instruction),
        ("80F2000003 AABBCC 9000", "80F2000003>AABBCC9000", .instruction),
        ("80F2400002 4F00 9000", "80F24000024F00>9000", .instruction),
        ("801200000B D009810301250082028182 9110", "801200000B>D0098103012500820281829110", .instruction),
        ("80CB008003 AABBCC 9000", "80CB008003AABBCC>9000", .instruction),
        ("80CB000003 AABBCC 9000", "80CB000003>AABBCC9000", .instruction),
        ("B058000002 AABB 6985", "B058000002AABB>6985", .status),
        ("B058000002 AABB 6104", "B058000002AABB>6104", .status),
        ("B058000002 AABB 9000", "B058000002AABB>9000", .assumed),
        // Case 4S: with an answer, without, DESFire, secure messaging; and an answer that no Le asked for.
        ("00A4040002 AABB 00 6F00 9000", "00A4040002AABB00>6F009000", .lengths),
        ("00A4040002 AABB 00 6A82", "00A4040002AABB00>6A82", .lengths),
        ("905A000003 010000 00 9100", "905A00000301000000>9100", .lengths),
        ("0CB0000004 97020102 00 99029000 9000", "0CB00000049702010200>990290009000", .lengths),
        ("00A4040002 AABB 6F03840111 9000", "00A4040002AABB>6F038401119000", .lengths),
        // A card that answers more than Le to a command that only reads.
        ("00B0000002 AABBCCDD 9000", "00B0000002>AABBCCDD9000", .instruction),
        // Extended, field report A5: Lc 0x0010, Ne 65,536 of which little came.
        (
            "00D6000000 0010 0102030405060708090A0B0C0D0E0F10 9000", "00D600000000100102030405060708090A0B0C0D0E0F10>9000",
            .instruction
        ),
        ("00A4040C00 0002 AABB 0000 6F00 9000", "00A4040C000002AABB0000>6F009000", .instruction),
        // A Type 4 tag's NDEF file: its own length in front is not an extended Le.
        ("00B0000000 0003D00000 9000", "00B0000000>0003D000009000", .instruction),
    ]

    @Test(arguments: cases) func aCommandEndsWhereItsLengthsAndItsInstructionSay(
        _ octets: String, _ parts: String, _ reason: JoinedExchange.Reason
    ) throws {
        let found = try #require(try split(octets))
        #expect(found.0 == parts)
        #expect(found.1 == reason)
    }

    @Test func whatIsTooLongForShortLengthsHasExtendedOnes() throws {
        let data = String(repeating: "5A", count: 512)
        #expect(try split("00B0000000 0200 \(data) 9000")?.0 == "00B00000000200>\(data)9000")
        #expect(try split("00DA010000 0200 \(data) 9000")?.0 == "00DA0100000200\(data)>9000")
        #expect(try split("00CB3FFF00 0004 5C023F00 0000 \(data) 9000")?.0 == "00CB3FFF0000045C023F000000>\(data)9000")
        let long = String(repeating: "A5", count: 2_048)
        #expect(try split("00B0000000 0000 \(long) 9000")?.0 == "00B00000000000>\(long)9000")
    }

    @Test func otherCommandsOfTheSameInstructionTell() throws {
        let one = try Hex.decode("B058000004 AABB 9000")
        var habits = JoinedExchange.Habits()
        habits.learn(one[...])
        #expect(try split("B058000002 AABB 9000", habits)?.0 == "B058000002>AABB9000")
        #expect(try split("B058000002 AABB 9000", habits)?.1 == .others)
        // One that goes both ways tells nothing.
        habits.learn(try Hex.decode("B058000002 AABB 04 CC 9000")[...])
        #expect(try split("B058000002 AABB 9000", habits)?.1 == .assumed)
    }

    @Test(arguments: ["", "90", "9000", "00A40000", "00A4000490"]) func fewerThanSixOctetsAreNoExchange(_ text: String) throws {
        #expect(try split(text) == nil)
    }

    @Test func noLengthFitsIsNoExchange() throws {
        // Lc 16 and Le 1, or Le 16: less than the 300 octets that follow.
        let data = String(repeating: "00", count: 16)
        #expect(try split("B058000000 0010 \(data) 0001 \(String(repeating: "00", count: 300)) 9000") == nil)
    }

    /// Whatever the octets: the parts put together are what was given, a command has a header, an answer a status word.
    @Test func thePartsAreAlwaysTheWhole() {
        var random = SplitMix(state: 0x51)
        for _ in 0..<HostileInputTests.mutations * 4 {
            var octets = (0..<Int.random(in: 0...24, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
            if octets.count > 5, Bool.random(using: &random) { octets[4] = UInt8.random(in: 0...12, using: &random) }
            if Int.random(in: 0..<8, using: &random) == 0 { octets += [UInt8](repeating: 7, count: 700) }
            // A slice that does not begin at 0.
            let slice = ([0xEE, 0xEE] + octets)[2...]
            guard let joined = JoinedExchange(slice) else { continue }
            #expect([UInt8](joined.command) + joined.answer == octets)
            #expect(joined.command.count >= 4 && joined.answer.count >= 2)
        }
    }
}
