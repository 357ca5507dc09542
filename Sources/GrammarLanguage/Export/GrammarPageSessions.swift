// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

/// What happens over several messages.
extension PageWriter {
    mutating func exchanges(_ list: [Declaration]) {
        let exchanges = list.compactMap { if case .exchange(let it) = $0 { it } else { nil } }
        guard !exchanges.isEmpty else { return }
        lines += [
            "## Exchanges", "", "| exchange | request | response | fields with a type of their own |",
            "| --- | --- | --- | --- |",
        ]
        for exchange in exchanges {
            let request = exchange.request.map { full($0) } ?? ""
            let guardText = exchange.condition.map { " when \(code(words.expression($0)))" } ?? ""
            let refinements = exchange.refinements.map { refinement in
                "\(words.expression(refinement.path)) : \(refined(refinement.type))"
                    + (refinement.condition.map { " when \(words.expression($0))" } ?? "")
            }
            lines.append(
                "| \(cell(exchange.label?.text ?? exchange.name.text)) | \(cell(request))\(guardText) | \(exchange.response.map { full($0) } ?? "none") | \(refinements.map { code($0) }.joined(separator: ", ")) |"
            )
        }
        lines.append("")
    }

    private func refined(_ type: TypeSyntax) -> String {
        guard case .inline(let items, _) = type else { return words.type(type) }
        return items.compactMap { item in
            guard case .field(let field) = item else { return nil }
            return field.name.text + (field.isNonce ? " (drawn at random)" : "") + (field.isSecret ? " (secret)" : "")
        }.joined(separator: ", ")
    }

    private func full(_ name: (grammar: Name?, name: Name)) -> String {
        (name.grammar.map { $0.text + "." } ?? "") + name.name.text
    }

    private mutating func title(_ name: Name) {
        lines += ["### \(name.text)", ""]
        let comment = words.comment(above: name.place)
        if !comment.isEmpty { lines += [comment.joined(separator: " "), ""] }
    }

    mutating func gather(_ syntax: GatherSyntax) {
        title(syntax.name)
        let kind = syntax.type.map { full($0) } ?? ""
        lines.append("- parts of a \(syntax.isRequest ? "request" : "response") \(code(kind))" + condition(syntax.condition))
        if let part = syntax.part { lines.append("- each brings \(code(words.expression(part)))") }
        if let more = syntax.more { lines.append("- it goes on when \(code(words.expression(more)))") }
        if let next = syntax.next { lines.append("- the next one is known by \(code(words.expression(next)))") }
        if let decode = syntax.decode { lines.append("- together they are \(code(full(decode)))") }
        if let result = syntax.result { lines.append("- together they are \(code(full(result.type)))\(assigned(result))") }
        lines.append("")
    }

    private func condition(_ expression: Expression?) -> String { expression.map { " when \(code(words.expression($0)))" } ?? "" }

    private func assigned(_ syntax: YieldSyntax) -> String {
        syntax.assigns.isEmpty
            ? ""
            : " with "
                + syntax.assigns.map { code("\(words.expression($0.path)) = \(words.expression($0.value))") }.joined(
                    separator: ", ")
    }

    mutating func layer(_ syntax: LayerSyntax) {
        title(syntax.name)
        lines += ["Works with \(syntax.parameters.map { "\($0.name.text) (\($0.type.text))" }.joined(separator: ", ")).", ""]
        for clause in syntax.clauses {
            lines.append(
                "- **\(clause.isRequest ? "request" : "response")** \(code(full(clause.type)))\(condition(clause.condition))")
            for statement in clause.statements { lines.append("  - \(sentence(statement))") }
        }
        lines.append("")
    }

    private func sentence(_ statement: Statement) -> String {
        switch statement {
        case .bind(let name, let value): return code("\(name.text) = \(words.expression(value))")
        case .assign(let name, let value): return code("\(name.text) = \(words.expression(value))")
        case .bump(let name, let distance): return code("\(name.text) \(distance < 0 ? "-" : "+")= \(abs(distance))")
        case .open(let source, let transform, let name, let type):
            let how = transform.map { " with \(code(words.expression($0)))" } ?? ""
            return "open \(code(words.expression(source)))\(how) as \(name.text), \(code(words.type(type)))"
        case .check(let check): return sentence(check)
        case .start(_, let name, let arguments, _):
            return "start \(code("\(name.text)(\(arguments.map { words.expression($0) }.joined(separator: ", ")))"))"
        case .stop(let name, _): return "stop" + (name.map { " \($0.text)" } ?? "")
        case .yield(let syntax): return "gives \(code(full(syntax.type)))\(assigned(syntax))"
        case .note(let severity, let text): return "\(severity.name): \(text.text)"
        default: return "reads what the event carries"
        }
    }

    mutating func session(_ syntax: SessionSyntax) {
        title(syntax.name)
        let secrets = syntax.variables.filter(\.isGiven)
        if !secrets.isEmpty { lines += ["Opens with \(secrets.map(\.name.text).joined(separator: ", ")).", ""] }
        lines += ["```mermaid"] + StateDiagram.lines(syntax, words) + ["```", ""]
        for block in syntax.blocks {
            for transition in block.transitions where !transition.statements.isEmpty || transition.contested != nil {
                let states = block.states.map { $0.map(\.text).joined(separator: ", ") } ?? "any"
                lines.append(
                    "- \(states), on \(transition.events.map(\.text).joined(separator: ", "))\(condition(transition.condition)):")
                if let contested = transition.contested { lines.append("  - contested: \(contested.text)") }
                for statement in transition.statements { lines.append("  - \(sentence(statement))") }
            }
        }
        lines.append("")
        if let illegal = syntax.illegal { lines += ["Anything else is not allowed: \(illegal.text)", ""] }
    }

    mutating func example(_ syntax: ExampleSyntax) {
        lines += ["### \(syntax.subject.text)\(syntax.title.map { ": \($0.text)" } ?? "")", "", "```"]
        for given in syntax.givens { lines.append("given \(given.name.text) = \(Hex.encode(given.octets))") }
        for frame in syntax.frames { lines.append("\(frame.isRequest ? ">" : "<") \(Hex.encode(frame.octets))") }
        for expectation in syntax.expectations {
            switch expectation {
            case .code(let name, let count): lines.append("expect \(name.text)\(count.map { " \($0)" } ?? "")")
            case .field(let path, let octets): lines.append("expect \(path.text) == \(Hex.encode(octets))")
            }
        }
        lines += ["```", ""]
    }
}

/// A session as a state diagram of Mermaid.
enum StateDiagram {
    static func lines(_ syntax: SessionSyntax, _ words: SyntaxText) -> [String] {
        var lines = ["stateDiagram-v2"]
        let states = syntax.states.map(\.name.text)
        if let initial = syntax.states.first(where: \.isInitial) ?? syntax.states.first {
            lines.append("    [*] --> \(initial.name.text)")
        }
        for block in syntax.blocks {
            let from =
                block.states.map { $0.map(\.text) } ?? states.filter { state in !block.except.contains { $0.text == state } }
            for transition in block.transitions {
                var text = transition.events.map(\.text).joined(separator: ", ")
                switch transition.outcome {
                case .any: break
                case .ok: text += " ok"
                case .error: text += " error"
                case .errorNamed(let name): text += " error \(name)"
                }
                if let condition = transition.condition { text += " when " + words.expression(condition) }
                if transition.contested != nil { text += " (contested)" }
                for state in from {
                    let target = transition.target.text == "stay" ? state : transition.target.text
                    // Mermaid ends a label at a semicolon, and a colon begins one.
                    let label = text.map { $0 == ";" ? "," : $0 == ":" ? " " : String($0) }.joined()
                    lines.append("    \(state) --> \(target) : \(label)")
                }
            }
        }
        return lines
    }
}
