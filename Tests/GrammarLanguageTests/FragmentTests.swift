// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage
import GrammarRuntime
import TestSupport
import Testing

/// The three worked fragments of the language's design page, with the names that they assume put in.
@Suite(.enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence)))
struct FragmentTests {
    private static let types = """
        enum SM : bits(2) {
            0 none "no secure messaging"
            3 covered "header under the MAC"
        }
        enum SelectBy : u8 {
            0x00 file "by identifier"
            0x04 name "by DF name"
        }
        message AID { octets : rest }
        message DOL { octets : rest }

        """
    private static let exchanges = """

        exchange GET_CHALLENGE { request Command when ins == Ins.getChallenge response Response }
        exchange EXTERNAL_AUTHENTICATE { request Command when ins == Ins.externalAuthenticate response Response }
        example GET_CHALLENGE "8 bytes" { > 0084000008 < 0102030405060708 9000 }
        example EXTERNAL_AUTHENTICATE "refused" { > 0082000001 00 < 6300 }

        """
    private static let events = """
            event listCredentials, provisionCredential, deleteCredential, enterWiredMode(call.credential: id)
            event performWiredTransaction(call.credential: id), transceive(call.data: bytes, return.data: bytes), endWiredMode
            event performCardEmulationTransactionWithCurrentCredential, performTransaction, endCardEmulation, invalidate
            event enteredBackground, fieldStateChanged, cardEmulationTimeout(elapsed: int)

        """

    /// The page's blocks that begin with the word `grammar`, completed.
    private func sources() throws -> [GrammarSource] {
        let url = try #require(SharedData.folder).appendingPathComponent("specs/grammar.md")
        let page = try String(contentsOf: url, encoding: .utf8)
        let blocks = page.components(separatedBy: "```").map { $0.drop { $0 == "\n" } }.filter { $0.hasPrefix("grammar ") }
        try #require(blocks.count == 3)
        func put(_ text: String, before mark: String, in block: Substring) throws -> String {
            let place = try #require(block.range(of: mark))
            return block[..<place.lowerBound] + text + block[place.lowerBound...]
        }
        let iso7816 = try put(Self.types, before: "tlv FCI", in: blocks[0]) + Self.exchanges
        let passport = try put(
            "let header = raw(cla...p2)\n        ", before: "check obj.mac == retail(mac, ssc + pad(header)", in: blocks[1]
        )
        .replacing("use iso7816\n", with: "use iso7816\ncite \"ICAO Doc 9303-11, 4.3 and 9.8\"\n")
        let session = try put(Self.events, before: "    state management initial", in: blocks[2])
        return [
            GrammarSource(name: "iso7816.grammar", text: iso7816), GrammarSource(name: "passport.grammar", text: passport),
            GrammarSource(name: "credentialSession.grammar", text: session),
        ]
    }

    @Test func theThreeFragmentsHaveNoMistakeOnceTheirNamesAreThere() throws {
        let set = GrammarSet.compile(try sources())
        #expect(set.diagnostics.isEmpty, "\(set.diagnostics)")
        #expect(!set.program.exampleFrames.isEmpty)
    }

    /// Where `text` stands in a source: line and column, from 1.
    private func place(of text: String, in source: GrammarSource) throws -> (line: Int, column: Int) {
        let range = try #require(source.text.range(of: text))
        let before = source.text[..<range.lowerBound]
        let line = before.count { $0 == "\n" } + 1
        return (line, before.distance(from: before.lastIndex(of: "\n") ?? before.startIndex, to: range.lowerBound))
    }

    @Test func fiveMistakesInThemAreSaidInOneRunEachAtItsLine() throws {
        var sources = try sources()
        func spoil(_ number: Int, _ old: String, _ new: String) throws {
            let text = sources[number].text
            let range = try #require(text.range(of: old))
            sources[number] = GrammarSource(name: sources[number].name, text: text.replacingCharacters(in: range, with: new))
        }
        // A missing colon, a choose without otherwise, an unclosed string, an unknown name, a key in a text.
        try spoil(0, "    p1   : u8", "    p1     u8")
        try spoil(0, "    otherwise : malformed { raw:rest } error \"no ISO 7816-4 case has {remaining} bytes here\"\n", "")
        try spoil(0, "\"normal processing\"", "\"normal processing")
        try spoil(1, "ifd.b == rndIC", "ifd.b == rndICC")
        try spoil(1, "command MAC is wrong at SSC {ssc}", "command MAC is wrong under {mac}")
        let wanted = [
            ("iso7816.grammar", try place(of: "    p1     u8", in: sources[0]).line),
            ("iso7816.grammar", try place(of: "choose Body", in: sources[0]).line),
            ("iso7816.grammar", try place(of: "\"normal processing", in: sources[0]).line),
            ("passport.grammar", try place(of: "rndICC", in: sources[1]).line),
            ("passport.grammar", try place(of: "under {mac}", in: sources[1]).line),
        ]
        let found = GrammarSet.compile(sources).diagnostics.filter { $0.severity == .error }
        for (file, line) in wanted {
            #expect(
                found.contains { $0.file == file && $0.line == line && $0.column > 0 }, "\(file):\(line) is not among \(found)")
        }
    }
}
