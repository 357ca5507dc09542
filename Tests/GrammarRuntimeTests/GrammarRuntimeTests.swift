// SPDX-License-Identifier: MIT

import Foundation
import GrammarRuntime
import Octets
import Testing

@Suite struct TransformTests {
    private func run(_ name: String, _ arguments: String...) throws -> String {
        let transform = try #require(StandardTransforms().transform(named: name))
        return Hex.encode(try transform(try arguments.map { try Hex.decode($0) }))
    }

    // ICAO Doc 9303-11, appendix D.1 to D.3.
    @Test func theKeysOfBasicAccessControlAreThePrintedOnes() throws {
        let seed = "239AB9CB282DAF66231DC5A4DF6BFBAE"
        #expect(try run("kdf", seed, "00000001") == "AB94FDECF2674FDFB9B391F85D7F76F2")
        #expect(try run("kdf", seed, "00000002") == "7962D9ECE03D1ACD4C76089DCE131543")
        let sealed = "72C29C2371CC9BDB65B779B8E8D37B29ECC154AA56A8799FAE2F498F76ED92F2"
        #expect(try run("retail", "7962D9ECE03D1ACD4C76089DCE131543", sealed) == "5F1448EEA8AD90A7")
        #expect(
            try run("tdes", "AB94FDECF2674FDFB9B391F85D7F76F2", sealed)
                == "781723860C06C2264608F919887022120B795240CB7049B01C19B33E32804F0B")
    }

    // RFC 4493, example 2.
    @Test func cmacIsThatOfTheStandard() throws {
        #expect(
            try run("cmac", "2B7E151628AED2A6ABF7158809CF4F3C", "6BC1BEE22E409F96E93D7E117393172A")
                == "070A16B46B4D4144F79BDD9DD04A287C")
    }

    // ISO/IEC 14443-3, annex B: CRC_A of 0000 and of 1234, CRC_B of 000000 and of 0FAAFF.
    @Test func checksumsAreThoseOfTheStandard() throws {
        #expect(try run("crcA", "0000") == "A01E")
        #expect(try run("crcA", "1234") == "26CF")
        #expect(try run("crcB", "000000") == "CCC6")
        #expect(try run("crcB", "0FAAFF") == "FCD1")
        #expect(try run("lrc", "004000") == "40")
    }

    @Test func everyInverseUndoesItsTransform() throws {
        let keys = ["tdes": 16, "aes": 16, "smOpen": 16]
        var checked = 0
        for transform in StandardTransforms.table.values {
            guard let name = transform.inverse, let inverse = StandardTransforms().transform(named: name) else { continue }
            #expect(inverse.inverse == transform.name)
            guard let length = keys[transform.name] else { continue }
            var arguments = [[UInt8](0..<UInt8(length)), [UInt8](repeating: 3, count: 16), [UInt8](0..<32)]
            if transform.parameters.count == 2 { arguments.remove(at: 1) }
            let there = try transform(arguments)
            arguments[arguments.count - 1] = there
            #expect(try inverse(arguments) == [UInt8](0..<32))
            checked += 1
        }
        #expect(checked == 3)
    }

    @Test func aWrongNumberOfValuesIsAnErrorAndNotATrap() throws {
        let transform = try #require(StandardTransforms().transform(named: "cmac"))
        #expect(throws: TransformError.self) { try transform([[0]]) }
        #expect(throws: TransformError.self) { try transform([[0], [0]]) }
        #expect(throws: TransformError.self) { try transform([]) }
    }
}

@Suite struct EnumerationTests {
    private let status = Enumeration(
        name: "s", bits: 16, isClosed: false,
        entries: [
            .init(value: 0x6300, mask: 0xFF00, name: 0, text: "masked"),
            .init(value: 0x63C0, mask: 0xFFF0, name: 1, text: "later"),
            .init(value: 0x6301, mask: 0xFFFF, name: 2, text: "exact"), .init(value: 0x9000, mask: 0xFFFF, name: 3, text: "ok"),
        ])

    @Test func anExactValueComesBeforeAMaskedOneAndMasksInTheirOrder() {
        #expect(status.find(0x6301) == 2)
        #expect(status.find(0x63C5) == 0)
        #expect(status.find(0x9000) == 3)
        #expect(status.find(0x9001) == nil)
    }
}

@Suite struct Structure {
    /// The runtime is meant to be small: neither Foundation nor the language's front end.
    @Test func theRuntimeImportsOnlyWhatItMay() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Sources/GrammarRuntime")
        var imports: Set<String> = []
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        where file.pathExtension == "swift" {
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") where line.hasPrefix("import ") {
                imports.insert(String(line.dropFirst(7)))
            }
        }
        #expect(imports == ["CardCrypto", "Octets"])
    }

    @Test func aProgramOfNothingAnswersEverythingWithNothing() {
        var decoder = Decoder(Program(ProgramTables()))
        let outcome = decoder.push(request: [1, 2, 3], entry: 0)
        #expect(outcome.spans.isEmpty)
        #expect(decoder.path(of: 5) == "")
        #expect(decoder.text(of: -1) == nil)
        #expect(decoder.octets(of: 7).isEmpty)
        let isKnown = decoder.give("a.b", [0])
        #expect(!isKnown)
        #expect(decoder.program.entry(named: "a.B") == nil)
    }
}
