// SPDX-License-Identifier: MIT

import GrammarLanguage
import GrammarRuntime
import Octets
import Testing

/// Promises about the grammars of `Grammars/` as a library.
@Suite struct Library {
    static let names = [
        "atr", "bac", "credentialSession", "desfire", "emrtd", "globalPlatform", "iso14443", "iso7816", "pcscReader",
        "secureMessaging", "t1",
    ]
    private var program: Program { Shipped.set.program }

    @Test func theGrammarsThatOthersRelyOnAreThere() {
        let present = Set(Shipped.sources.map(\.name))
        for name in Self.names { #expect(present.contains("\(name).grammar")) }
    }

    @Test func everyFileIsCalledAsItsGrammar() {
        for source in Shipped.sources {
            let first = source.text.split(whereSeparator: \.isNewline).first.map(String.init)
            #expect(first == "grammar \(source.name.dropLast(".grammar".count))")
        }
    }

    @Test func everyGrammarCitesAStandard() {
        for grammar in program.grammars { #expect(!grammar.citations.isEmpty, "\(grammar.name)") }
    }

    @Test func everyExchangeHasAnExample() {
        let shown = Set(program.examples.map(\.exchange))
        for (number, exchange) in program.exchanges.enumerated() {
            #expect(shown.contains(number), "\(exchange.grammar).\(exchange.name)")
        }
    }

    @Test func everyGrammarButASessionAloneHasAnExample() {
        let shown = Set(program.examples.map(\.grammar))
        for name in Self.names where name != "credentialSession" { #expect(shown.contains(name), "\(name)") }
    }

    @Test func everyGrammarStandsInTheCanonicalLayout() {
        for source in Shipped.sources { #expect(GrammarFormatter().format(source) == source.text, "\(source.name)") }
    }

    /// A rendering must not hold what a field marked secret holds.
    @Test func noSecretOfAnExampleIsInAText() {
        var seen = 0
        for example in program.examples {
            var decoder = Decoder(program, secrets: Dictionary(example.givens) { first, _ in first })
            for (number, frame) in example.frames.enumerated() {
                let outcome = push(&decoder, example, frame, number)
                for span in outcome.spans where decoder.isSecret(span) && !decoder.isComposite(span) {
                    seen += 1
                    #expect(decoder.text(of: span) == "\(decoder.octets(of: span).count) bytes, secret")
                }
            }
        }
        #expect(seen > 20)
    }

    /// What either side draws at random, by path; a matcher of replays relies on it.
    @Test(arguments: [
        "iso7816.response.data.challenge", "iso7816.command.data.challenge", "bac.ifd.rndIFD", "bac.icc.kIC",
        "iso14443.command.body.uid", "iso14443.command.body.pupi", "iso14443.atqb.pupi",
    ])
    func whatIsDrawnAtRandomIsANonce(_ path: String) {
        var found = false
        for example in program.examples {
            var decoder = Decoder(program, secrets: Dictionary(example.givens) { first, _ in first })
            for (number, frame) in example.frames.enumerated() {
                let outcome = push(&decoder, example, frame, number)
                found = found || outcome.spans.contains { decoder.path(of: $0) == path && decoder.isNonce($0) }
            }
        }
        #expect(found)
    }

    private func push(
        _ decoder: inout Decoder, _ example: ExampleInfo, _ frame: ExampleInfo.Frame, _ number: Int
    ) -> Decoder.Outcome {
        let exchange = example.exchange >= 0 ? program.exchanges[example.exchange] : nil
        return frame.isRequest
            ? decoder.push(request: frame.octets, entry: exchange?.request ?? example.root, exchange: number)
            : decoder.push(response: frame.octets, entry: exchange?.response ?? example.root, exchange: number)
    }
}
