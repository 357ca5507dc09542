// SPDX-License-Identifier: MIT

import GrammarLanguage
import GrammarRuntime
import Octets
import Testing

/// What the grammars of contactless cards ask of the language.
@Suite struct StateInConditions {
    private static let text = """
        grammar t
        cite "nothing"
        message Command { code : u8 body : Body }
        choose Body {
            when Door.open : words { word : ascii }
            otherwise : numbers { number : uint }
        }
        message Response { _ : u8 }
        exchange OPEN { request Command when code == 1 }
        exchange SAY "say" {
            request Command when has(body) and code != 1
            response Response
        }
        session Door {
            state closed initial
            state open
            in any { on OPEN -> open }
        }
        example OPEN "open" { > 01 }
        example SAY "after that, words" {
            > 01
            > 0241
            < 00
        }
        """
    private func compiled(_ text: String) -> GrammarSet { GrammarSet.compile([GrammarSource(name: "t.grammar", text: text)]) }

    @Test func theSameBytesMeanAnotherThingInAnotherState() throws {
        let set = compiled(Self.text)
        #expect(set.diagnostics.isEmpty, "\(set.diagnostics.map(\.description))")
        var decoder = Decoder(set.program)
        let entry = try #require(set.program.entry(named: "t.Command"))
        func path(_ decoder: Decoder) -> String? { decoder.spans.indices.last.map { decoder.path(of: $0) } }
        _ = decoder.push(request: [2, 0x41], entry: entry)
        #expect(path(decoder) == "t.command.body.number")
        _ = decoder.push(response: [0], entry: try #require(set.program.entry(named: "t.Response")))
        _ = decoder.push(request: [1], entry: entry)
        _ = decoder.push(request: [2, 0x41], entry: entry)
        #expect(path(decoder) == "t.command.body.word")
    }

    @Test func aCommandThatNothingAnswersIsNotWaitedFor() throws {
        let set = compiled(Self.text)
        var decoder = Decoder(set.program)
        let entry = try #require(set.program.entry(named: "t.Command"))
        _ = decoder.push(request: [1], entry: entry)
        let next = decoder.push(request: [1], entry: entry)
        #expect(decoder.annotations[next.annotations].allSatisfy { $0.code != .unpaired })
    }

    @Test func aStateThatDoesNotExistIsNamedWithTheNearest() {
        let problems = compiled(Self.text.replacing("Door.open", with: "Door.opem")).diagnostics.filter { $0.severity == .error }
        #expect(problems.contains { $0.code == .unknownName && $0.message == "there is no state opem; did you mean 'open'?" })
    }

    @Test func anExchangeIsFoundWithoutTheFieldThatTheOthersAreToldBy() throws {
        let set = compiled(
            """
            grammar t
            cite "nothing"
            message Command { kind : Kind }
            choose Kind {
                when remaining == 1 : short { code : u8 }
                otherwise : long { data : rest }
            }
            exchange ONE { request Command when kind.code == 1 }
            exchange TWO { request Command when kind.code == 2 }
            exchange LONG { request Command when has(kind.data) }
            example ONE "" { > 01 }
            example TWO "" { > 02 }
            example LONG "" { > 0102 }
            """)
        #expect(set.diagnostics.isEmpty, "\(set.diagnostics.map(\.description))")
        var decoder = Decoder(set.program)
        let outcome = decoder.push(request: [1, 2], entry: try #require(set.program.entry(named: "t.Command")))
        #expect(outcome.exchange.flatMap { decoder.exchangeName($0)?.name } == "LONG")
    }

    @Test func aNameThatAnExchangeGivesTakesTheRemarkAway() throws {
        let set = compiled(
            """
            grammar t
            cite "nothing"
            enum Common : u8 { 0x01 one "one" }
            enum Own : u8 { 0x02 two "two" }
            message Command { code : Common }
            exchange X {
                request Command
                refine request.code : Own when request.code == 2
            }
            example X "" { > 02 }
            """)
        var decoder = Decoder(set.program)
        let entry = try #require(set.program.entry(named: "t.Command"))
        let known = decoder.push(request: [2], entry: entry)
        #expect(decoder.annotations[known.annotations].isEmpty)
        #expect(decoder.text(of: 1) == "two")
        let unknown = decoder.push(request: [3], entry: entry)
        #expect(decoder.annotations[unknown.annotations].map(\.code) == [.unknown])
    }
}
