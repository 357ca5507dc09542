// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

/// Examples: bytes with what they must decode to.
extension Compiler {
    mutating func example(_ syntax: ExampleSyntax) {
        guard let symbol = find(syntax.grammar, syntax.subject, "exchange or message") else { return }
        var info = ExampleInfo(name: syntax.title?.text ?? syntax.subject.text, grammar: grammar)
        info.place = grammarPlace(syntax.place)
        info.frames = syntax.frames
        info.givens = syntax.givens.map { ($0.name.text, $0.octets) }
        for given in syntax.givens where !program.givenNames.contains(given.name.text) {
            let hint = nearest(given.name.text, program.givenNames).map { "; did you mean '\($0)'?" } ?? ""
            diagnostics.add(.unknownName, given.name.place, "no grammar has a secret \(given.name.text)\(hint)")
        }
        switch symbol.declaration {
        case .exchange:
            info.exchange = symbol.number
            exampled.insert("\(symbol.grammar).\(syntax.subject.text)")
        default:
            guard let root = entries["\(symbol.grammar).\(syntax.subject.text)"] else {
                diagnostics.add(
                    .type, syntax.subject.place, "expected an exchange or a message, found the \(symbol.declaration.kind)")
                return
            }
            info.root = root
        }
        for expectation in syntax.expectations {
            switch expectation {
            case .field(let path, let octets):
                info.expectations.append((.field(path: path.text, octets: octets), grammarPlace(path.place)))
            case .code(let name, let count):
                guard let code = AnnotationCode(rawValue: name.text) else {
                    let hint = nearest(name.text, AnnotationCode.allCases.map(\.rawValue)).map { "; did you mean '\($0)'?" } ?? ""
                    diagnostics.add(.unknownName, name.place, "there is no annotation \(name.text)\(hint)")
                    continue
                }
                info.expectations.append((.code(code, count), grammarPlace(name.place)))
            }
        }
        program.examples.append(info)
        examples.append((syntax, grammar))
    }

    mutating func runExamples() {
        let whole = Program(program)
        for (index, info) in program.examples.enumerated() {
            for problem in whole.run(info, registry) {
                diagnostics.add(.example, examples[index].syntax.subject.place, problem)
            }
        }
    }
}

extension Program {
    /// Decodes an example and says what is not as it expects.
    func run(_ info: ExampleInfo, _ registry: any TransformRegistry) -> [String] {
        var decoder = Decoder(self, transforms: registry, secrets: Dictionary(info.givens) { first, _ in first })
        var problems: [String] = []
        var counts: [AnnotationCode: Int] = [:]
        var found: [String: [[UInt8]]] = [:]
        var matched = info.exchange < 0
        let expected = Set(info.expectations.compactMap { if case .code(let code, _) = $0.0 { code } else { nil } })
        for (number, frame) in info.frames.enumerated() {
            let request = info.exchange >= 0 ? tables.exchanges[info.exchange].request : info.root
            let response = info.exchange >= 0 ? tables.exchanges[info.exchange].response : info.root
            guard request >= 0, frame.isRequest || response >= 0 else { return ["this exchange has no response"] }
            let outcome =
                frame.isRequest
                ? decoder.push(request: frame.octets, entry: request, exchange: number + 1)
                : info.exchange < 0
                    ? decoder.push(request: frame.octets, entry: response, exchange: number + 1)
                    : decoder.push(response: frame.octets, entry: response, exchange: number)
            if info.exchange < 0 { decoder.state = CardState(self) }
            if outcome.exchange == info.exchange || (info.exchange >= 0 && outcome.carrier == info.exchange) { matched = true }
            for annotation in decoder.annotations[outcome.annotations] {
                counts[annotation.code, default: 0] += 1
                if annotation.severity > .note, !expected.contains(annotation.code) {
                    problems.append("frame \(number + 1) says: \(annotation.code.rawValue): \(decoder.text(of: annotation))")
                }
            }
            for span in outcome.spans where !decoder.isComposite(span) {
                found[decoder.path(of: span), default: []].append(decoder.octets(of: span))
            }
            if let root = outcome.spans.first, let draft = decoder.draft(of: root), decoder.encode(draft) != frame.octets {
                problems.append("frame \(number + 1) is not written again as it was read")
            }
        }
        if !matched { problems.append("no frame is a request of this exchange") }
        for (expectation, _) in info.expectations {
            switch expectation {
            case .code(let code, let count):
                let present = counts[code] ?? 0
                if present == 0 || (count != nil && count != present) {
                    problems.append("expected \(count.map { "\($0) times " } ?? "")\(code.rawValue), found it \(present) times")
                }
            case .field(let path, let octets):
                if found[path]?.contains(octets) != true {
                    let there = found[path].map { $0.map { Hex.encode($0) }.joined(separator: ", ") }
                    let hint = there == nil ? nearest(path, found.keys.sorted()).map { "; did you mean '\($0)'?" } ?? "" : ""
                    problems.append("expected \(path) to be \(Hex.encode(octets)), found \(there ?? "no such field")\(hint)")
                }
            }
        }
        return problems
    }
}
