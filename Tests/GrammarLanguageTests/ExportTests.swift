// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage
import GrammarRuntime
import TestSupport
import Testing

/// What is made from grammars for other programs and for people.
@Suite struct ExportTests {
    static let small = """
        grammar small
        cite "ISO 1, clause 2"

        // What a thing is.
        enum Kind : u8 {
            0x01 first "the first"
            0x2? masked "masked {low}"
        }

        // A message with one of everything.
        message Thing {
            kind : Kind "kind"
            version : u8 = 3
            count : u8 = count(data)
            data : bytes(count) nonce "the data"
            flags : bits(8) { high : 4 low : 4 "low part" }
            rest : Objects
        }

        tlv Objects : ber {
            6F outer "outer" {
                84 name : ascii "name"
                A5 more
            }
        }

        message Answer { ok : u8 ok when ok == 0 }

        exchange ASK "ask" {
            request Thing when kind == Kind.first
            response Answer
        }

        session Life {
            state asleep initial {
                on ASK ok -> awake
                on ASK -> stay
            }
            state awake
            in awake {
                on reset -> asleep contested "one page says that it stays; another that it sleeps"
                on ASK when request.version == 3 -> stay
            }
        }

        example ASK "one of everything" {
            > 01 03 02 AABB 12 6F048402 4142
            < 00
        }
        """

    static func program(_ text: String = small) throws -> Program {
        let set = GrammarSet.compile([GrammarSource(name: "small.grammar", text: text)])
        try #require(!set.hasErrors, "\(set.diagnostics.map(\.description))")
        return set.program
    }

    // MARK: JSON

    @Test func theJSONIsOneObjectThatSaysWhatStandsWhere() throws {
        let text = GrammarJSON(try Self.program()).text
        let json = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        #expect(json["format"] as? Int == 1)
        let messages = try #require(json["messages"] as? [[String: Any]])
        let thing = try #require(messages.first { $0["name"] as? String == "small.Thing" })
        let fields = try #require(thing["fields"] as? [[String: Any]])
        let paths = fields.map { $0["path"] as? String }
        #expect(paths.prefix(4) == ["small.thing.kind", "small.thing.version", "small.thing.count", "small.thing.data"])
        #expect(fields[3]["marks"] as? [String] == ["nonce"])
        let place = try #require(fields[1]["place"] as? [String: Any])
        #expect(place["line"] as? Int == 13 && place["column"] as? Int == 5 && place["file"] as? String == "small.grammar")
        let sessions = try #require(json["sessions"] as? [[String: Any]])
        #expect((sessions.first?["transitions"] as? [Any])?.count == 4)
    }

    @Test func theJSONOfTheGrammarsHereIsValid() throws {
        let text = GrammarJSON(ExportSupport.program).text
        let json = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        #expect((json["grammars"] as? [Any])?.count == ExportSupport.sources.count)
        #expect((json["exchanges"] as? [Any])?.count == ExportSupport.program.exchanges.count)
    }

    // MARK: Pages

    @Test func aPageHasByteTablesTagTreesValuesStatesAndExamples() throws {
        let page = try #require(GrammarPage.pages([GrammarSource(name: "small.grammar", text: Self.small)]).first)
        #expect(page.name == "small")
        let expected = [
            "- ISO 1, clause 2", "A message with one of everything.", "| 0 | kind | `Kind` | kind |",
            "| 1 | version | `u8` | = `3` |",
            "| 3… | data | `bytes(count)` | the data; drawn at random |", "| | b4-b1 low |  | low part |",
            "- `6F` **outer** outer",
            "  - `84` **name** name: `ascii`", "| 2? | masked | masked {low} |", "```mermaid", "    [*] --> asleep",
            "    asleep --> awake : ASK ok", "    awake --> asleep : reset (contested)",
            "    awake --> awake : ASK when request.version == 3", "> 010302AABB126F0484024142",
        ]
        let lines = Set(page.text.split(separator: "\n").map(String.init))
        for line in expected { #expect(lines.contains(line), "\(line)") }
    }

    @Test func pagesDependOnTheirGrammarsAlone() {
        let pages = GrammarPage.pages(ExportSupport.sources)
        let again = GrammarPage.pages(ExportSupport.sources.reversed())
        #expect(pages.map(\.name) == again.map(\.name))
        #expect(pages.map(\.text) == again.map(\.text))
        #expect(pages.count == ExportSupport.sources.count)
        for page in pages {
            #expect(page.text.hasPrefix("# \(page.name)\n"))
            // A table's rows have as many cells as its head.
            var cells = 0
            for line in page.text.split(separator: "\n", omittingEmptySubsequences: false) {
                guard line.hasPrefix("|") else {
                    cells = 0
                    continue
                }
                let count = String(line).replacingOccurrences(of: "\\|", with: "").filter { $0 == "|" }.count
                if cells == 0 { cells = count }
                #expect(count == cells, "\(page.name): \(line)")
            }
        }
    }

    // MARK: Explanations

    @Test(arguments: [
        ("kind", "free"), ("version", "constant 3h"), ("small.thing.count", "derived from line 14"), ("data", "free"),
    ])
    func aFieldsOriginIsExplained(_ name: String, _ sentence: String) throws {
        let list = FieldExplanation.of(name, in: try Self.program())
        #expect(list.first?.sentence == sentence)
    }

    @Test func whatIsReachedThroughATransformWithoutInverseIsReadOnly() throws {
        let text = """
            grammar oneWay
            cite "nothing"
            transform kdf (seed: bytes, counter: u32) -> key
            transform crcA (data: bytes) -> bytes
            message Command { ins : u8 data : rest }
            message Answer { sw : u16 }
            message Inside { value : rest }
            exchange ASK { request Command response Answer }
            session Life {
                state only initial {
                    on ASK -> stay { open request.data with crcA as inside : Inside }
                }
            }
            example ASK "one" {
                > 01 0203
                < 9000
            }
            """
        let list = FieldExplanation.of("inside.value", in: try Self.program(text))
        // The message on its own can be written, what is opened as one cannot.
        #expect(list.contains { $0.origin == .free })
        #expect(list.contains { $0.origin == .readOnly(why: "it is reached through crcA, which has no inverse") })
    }

    @Test func theMACOfSecureMessagingIsDerived() throws {
        let list = FieldExplanation.of("secureMessaging.obj.mac", in: ExportSupport.program)
        #expect(list.count == 2)
        for item in list {
            guard case .derived = item.origin else {
                Issue.record("\(item)")
                continue
            }
            #expect(item.remarks.contains { $0.contains("ssc") })
        }
    }

    // MARK: Coverage

    @Test func coverageCountsWhatWasMet() throws {
        let program = try Self.program()
        var coverage = GrammarCoverage(program)
        #expect(coverage.count(.exchange).met == 0)
        coverage.addExamples()
        #expect(coverage.count(.exchange) == (1, 1))
        // 6F and 84 of three; the version's and the count's checks held, none failed.
        #expect(coverage.count(.tag) == (2, 3))
        #expect(coverage.count(.checkHeld) == (2, 2))
        #expect(coverage.count(.checkFailed) == (0, 2))
        #expect(coverage.count(.transition) == (1, 4))
        #expect(coverage.missing.contains { $0.kind == .tag && $0.name.hasSuffix("outer.more") })

        var decoder = Decoder(program)
        let entry = try #require(program.entry(named: "small.Thing"))
        let outcome = decoder.push(request: [0x01, 0x04, 0x00, 0x12, 0x6F, 0x02, 0xA5, 0x00], entry: entry)
        coverage.add(decoder, outcome, before: [])
        #expect(coverage.count(.tag) == (3, 3))
        #expect(coverage.count(.checkFailed) == (1, 2))
    }

    // MARK: Editors

    @Test func theVocabularyIsWhatTheParserKnows() throws {
        let folder = ExportSupport.folder + "/../Sources/GrammarLanguage"
        var found: Set<String> = []
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name.hasPrefix("Parser") {
            let text = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
            let pattern = #/(?:accept|at|require)\("([A-Za-z0-9]+)"|text (?:==|!=) "([a-z]+)"/#
            for match in text.matches(of: pattern) { found.insert(String(match.output.1 ?? match.output.2 ?? "")) }
            if let list = text.firstMatch(of: #/static let keywords: Set<String> = \[([^\]]*)\]/#) {
                for word in list.output.1.matches(of: #/"([a-z]+)"/#) { found.insert(String(word.output.1)) }
            }
            for match in text.matches(of: #/case ((?:"[A-Za-z0-9]+"(?:, )?)+)/#) {
                for word in match.output.1.matches(of: #/"([A-Za-z0-9]+)"/#) { found.insert(String(word.output.1)) }
            }
        }
        let known = GrammarVocabulary.declarations.union(GrammarVocabulary.words).union(GrammarVocabulary.types)
        #expect(found.subtracting(known.union(GrammarVocabulary.functions)).isEmpty)
        #expect(known.subtracting(found).isEmpty)
    }

    @Test func theEditorsKnowTheSameWordsAsTheLanguage() throws {
        let lists = [
            ("declarations", "tapdeckDeclaration", GrammarVocabulary.declarations),
            ("words", "tapdeckWord", GrammarVocabulary.words),
            ("types", "tapdeckType", GrammarVocabulary.types), ("functions", "tapdeckFunction", GrammarVocabulary.functions),
        ]
        let folder = ExportSupport.folder + "/Editor"
        let data = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/tapdeck.tmLanguage.json"))
        let json = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let repository = try #require(json["repository"] as? [String: [String: Any]])
        let vim = try String(contentsOfFile: "\(folder)/vim/syntax/tapdeck.vim", encoding: .utf8)
        for (key, group, words) in lists {
            let pattern = try #require(repository[key]?["match"] as? String)
            let alternatives = pattern.dropFirst("\\b(?:".count).dropLast(")\\b".count).split(separator: "|").map(String.init)
            #expect(Set(alternatives) == words, "\(key)")
            let listed = vim.split(separator: "\n").filter { $0.hasPrefix("syntax keyword \(group) ") }
                .flatMap { $0.split(separator: " ").dropFirst(3).map(String.init) }
            #expect(Set(listed) == words && listed.count == words.count, "\(group)")
        }
    }
}
