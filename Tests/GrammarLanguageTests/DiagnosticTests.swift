// SPDX-License-Identifier: MIT

import GrammarLanguage
import GrammarRuntime
import Testing

@Suite struct Diagnostics {
    private func problems(_ text: String) -> [GrammarDiagnostic] {
        GrammarSet.compile([GrammarSource(name: "t.grammar", text: text)]).diagnostics.filter { $0.severity == .error }
    }

    private let sound = """
        grammar t
        cite "nothing"
        transform kdf (seed: bytes, counter: u32) -> key
        message M {
            a : u8
            b : Body
        }
        choose Body {
            when remaining == 0 : none {}
            otherwise : some { raw : rest }
        }
        enum E : u8 { 0x01 one "one" }
        exchange X {
            request M when a == E.one
            response M
        }
        session S {
            given seed : bytes(16)
            state start initial {
                on X -> start {
                    let enc = kdf(seed, 1)
                    check request.a == 1 error "not one"
                }
            }
        }
        example X "one" {
            > 01
            < 02
        }
        """

    @Test func aSoundGrammarHasNoMistake() {
        let all = GrammarSet.compile([GrammarSource(name: "t.grammar", text: sound)]).diagnostics
        #expect(all.isEmpty, "\(all.map(\.description))")
    }

    @Test func fiveMistakesAreReportedInOneRunEachAtItsPlace() {
        let wrong =
            sound
            .replacing("    a : u8\n", with: "    a u8\n")
            .replacing("    otherwise : some { raw : rest }\n", with: "")
            .replacing("0x01 one \"one\" }", with: "0x01 one \"one }")
            .replacing("error \"not one\"", with: "error \"not one but {enc}\"")
            .replacing("response M\n", with: "response N\n")
        let found = problems(wrong).map { "\($0.line):\($0.column) \($0.code)" }
        #expect(found.count == 5, "\(found)")
        #expect(found.contains("5:7 syntax"))
        #expect(found.contains("8:8 noOtherwise"))
        #expect(found.contains("11:24 unclosedString"))
        #expect(found.contains("14:14 unknownName"))
        #expect(found.contains("21:54 keyInText"))
    }

    @Test func aMessageNamesWhatWasExpectedAndWhatWasFoundUnderACaret() throws {
        let first = try #require(problems("grammar t\nmessage M {\n    a u8\n}\n").first)
        #expect(first.description == "t.grammar:3:7: expected ':', found 'u8'\n        a u8\n          ^^\n")
    }

    @Test(arguments: [
        ("message M { a : rest b : u8 }", GrammarDiagnostic.Code.size, "b can never have a byte"),
        ("message M { a : bytes(b) b : u8 }", .size, "read after this"),
        ("message M { a : u8 a : u8 }", .duplicate, "declared twice"),
        ("message M { a : Uint }", .unknownName, "did you mean 'uint'?"),
        ("message M { a : M }", .size, "holds itself"),
        ("enum E : u8 { 1 a 1 b }", .duplicate, "has a name already"),
        ("enum E : u8 { 0x1? a 0x1? b }", .unreachable, "every value here"),
        ("enum E : u8 { 0x101 a }", .size, "8 bits"),
        ("choose C { when remaining == 1 : a {} when remaining == 1 : b {} otherwise : c {} }", .unreachable, "never reached"),
        ("choose C { otherwise : a {} otherwise : b {} }", .unreachable, "takes everything"),
        ("tlv T : ber { 6F a 6F b }", .duplicate, "tag has a name"),
        ("tlv T : ber { 9F a }", .size, "that ber can encode"),
        ("message M { a : bits(8) { x : 3 } }", .size, "8 bits in all"),
        ("message M { a : u8 = hex(\"00\") }", .type, "found bytes"),
        ("message M { check a == 1 error \"x\" a : u8 }", .size, "read after this"),
        ("transform nothing (a: bytes) -> bytes", .unknownName, "no plug-in"),
        ("transform kdf (a: bytes) -> key", .type, "2 parameters"),
        ("transform kdf (a: bytes, b: u32) -> bytes", .type, "expected key"),
        ("example M \"x\" { > 00 }\nmessage M { a : u16 }", .example, "2 bytes wanted, 1 there"),
        ("session S { state a initial { on b -> a } }", .unknownName, "no exchange or event b"),
        ("session S { event b state a initial { on b -> c } }", .unknownName, "no state c"),
        (
            "layer L (k: key) { request M { let x = k + hex(\"00\") note \"{x}\" } } message M { a : u8 }", .keyInText,
            "would be printed"
        ),
        ("message M { a : u8 secret check a == 1 error \"{a}\" }", .keyInText, "would be printed"),
    ])
    func eachKindOfMistakeIsFound(_ text: String, _ code: GrammarDiagnostic.Code, _ part: String) {
        let found = problems("grammar t\ncite \"x\"\n" + text)
        #expect(found.contains { ($0.code == code && $0.description.contains(part)) }, "\(found.map(\.description))")
    }

    @Test func aBitFieldOfSixtyFourBitsAndACheckWithoutFieldsAreRead() throws {
        let text = """
            grammar t
            cite "x"
            message M { a : bits(8) { x : 8 } b : bits(64) { y : 64 } }
            session S { event e (n: int) state s initial { on e -> s { check n == 1 error "not one" } } }
            """
        let set = GrammarSet.compile([GrammarSource(name: "t", text: text)])
        #expect(set.diagnostics.isEmpty)
        var decoder = Decoder(set.program)
        let outcome = decoder.push(
            request: [UInt8](repeating: 0xFF, count: 9), entry: try #require(set.program.entry(named: "t.M")))
        #expect(outcome.spans.map { decoder.spans[$0].value }.contains(.max))
        let event = decoder.push(event: "e", values: ["n": .number(2)])
        #expect(decoder.annotations[event.annotations].map { decoder.text(of: $0) } == ["not one"])
    }

    @Test func doubtsAreWarnings() {
        let text = """
            grammar t
            message M { a : u8 }
            exchange X { request M response M }
            session S {
                state a initial { on X -> a on X ok -> a }
                state b
            }
            """
        let all = GrammarSet.compile([GrammarSource(name: "t.grammar", text: text)]).diagnostics
        #expect(Set(all.map(\.code.rawValue)) == ["uncited", "noExample", "shadowed", "unusedState"])
        #expect(all.allSatisfy { $0.severity == .warn })
    }

    @Test func aTransformWithoutAnInverseIsNamedWhereAMessageCannotBeWritten() {
        let text = """
            grammar t
            cite "x"
            transform retail (key: key, data: bytes) -> bytes
            message M { a : rest }
            layer L (k: key) { request M { yield M { a = retail(k, a) } } }
            """
        let all = GrammarSet.compile([GrammarSource(name: "t.grammar", text: text)]).diagnostics
        #expect(all.map(\.code) == [.notEncodable, .notEncodable] || all.map(\.code) == [.notEncodable])
    }

    @Test func mutatedGrammarsNeverTrapAndSayWhereTheyAreWrong() {
        var dice = GrammarDice(state: 3)
        let texts = Shipped.sources.map { Array($0.text.utf8.prefix(6000)) } + [Array(sound.utf8)]
        for turn in 0..<300 {
            let text = dice.changed(texts[turn % texts.count])
            let set = GrammarSet.compile([GrammarSource(name: "m", text: String(decoding: text, as: UTF8.self))])
            #expect(set.diagnostics.allSatisfy { $0.line > 0 && $0.column > 0 })
            #expect(set.diagnostics.count <= 200)
        }
    }

    @Test func aGrammarThatDoublesItselfIsRefusedInBoundedTime() {
        var text = "grammar t\ncite \"x\"\nmessage M0 { a : u8 b : u8 }\n"
        for level in 1...28 { text += "message M\(level) { a : M\(level - 1) b : M\(level - 1) }\n" }
        #expect(problems(text).contains { $0.code == .tooLarge })
    }
}

@Suite struct Formatting {
    @Test func formattingTwiceChangesNothingMoreAndKeepsEveryWord() throws {
        let formatter = GrammarFormatter()
        for source in Shipped.sources {
            let once = try #require(formatter.format(source))
            #expect(formatter.format(GrammarSource(name: source.name, text: once)) == once)
            let words = { (text: String) in text.filter { !$0.isWhitespace } }
            #expect(words(once) == words(source.text))
        }
    }

    @Test func theShippedGrammarsAreInTheCanonicalLayout() {
        for source in Shipped.sources { #expect(GrammarFormatter().format(source) == source.text, "\(source.name)") }
    }

    @Test func spacesColumnsAndCommentsHaveOneLayout() {
        let text =
            "grammar   t\n\n\n// one\nenum E:u8{\n0x01 a \"first\"   // first\n0x0222 longer \"second\"\n}\nmessage M{\na:u8\nlong:bytes( a )[0..<1]\n\n}"
        let expected = """
            grammar t

            // one
            enum E : u8 {
                0x01 a "first" // first
                0x0222 longer "second"
            }
            message M {
                a    : u8
                long : bytes(a)[0..<1]
            }

            """
        #expect(GrammarFormatter().format(GrammarSource(name: "t", text: text)) == expected)
    }

    @Test func aTextThatIsNotClosedIsLeftAlone() {
        #expect(GrammarFormatter().format(GrammarSource(name: "t", text: "cite \"open")) == nil)
    }
}
