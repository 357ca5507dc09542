// SPDX-License-Identifier: MIT

import GrammarRuntime

/// Turns layers round: what a protected message must hold for the plain one to come out of it (rules 4 and 5).
extension Compiler {
    private enum Step {
        case unpad(Expression?)
        case transform(String, [Expression], [ParameterSyntax])
    }

    mutating func turnRound(
        _ info: inout LayerInfo.Clause, _ clause: LayerSyntax.Clause, _ effects: Effects, _ scope: Scope, _ shape: Shape
    ) {
        info.open = effects.opened.first?.open ?? -1
        fix(clause.condition, scope, &info, isRequired: false)
        for check in effects.checks { fix(check.predicate, scope, &info, isRequired: true) }
        guard let yield = effects.yields.first else { return }
        let target = Scope(shapes: [shape])
        for assign in yield.assigns {
            guard case .field(let plain)? = resolve(assign.path, target) else { continue }
            if case .number = assign.value { continue }
            guard let (inner, steps) = solve(assign.value) else {
                diagnostics.add(
                    .notEncodable, assign.value.place, "this cannot be turned round, so the message can be read and not written",
                    severity: .warn)
                continue
            }
            guard case .field(let field)? = resolve(inner, scope) else { continue }
            let node = program.nodes[plain.node]
            if program.nodes[Int(max(0, node.parent))].kind == .root, !node.flags.contains(.optional),
                !steps.isEmpty || field.slot != plain.slot
            {
                info.keeps.append(plain.slot)
            }
            var equation = Assignment(slot: field.slot, code: -1, source: plain.slot, condition: -1)
            if let condition = assign.condition {
                let present = assumingPresence(condition)
                equation.condition = aside { compiler in
                    compiler.condition(present, scope)
                    compiler.emit(.done)
                }
            }
            if !steps.isEmpty {
                equation.code = aside { compiler in
                    compiler.undo(steps, steps.count, plain.slot, scope)
                    compiler.emit(.done)
                }
            }
            info.equations.append(equation)
        }
    }

    /// `field == constant` in a guard or a check says what the field is when it is written.
    private func fix(_ condition: Expression?, _ scope: Scope, _ info: inout LayerInfo.Clause, isRequired: Bool) {
        guard let condition else { return }
        switch condition {
        case .binary(.and, let left, let right, _), .binary(.or, let left, let right, _):
            fix(left, scope, &info, isRequired: isRequired)
            fix(right, scope, &info, isRequired: isRequired)
        case .binary(.equal, let left, let right, _):
            guard case .field(let field)? = resolve(left, scope), case .number = field.kind else { return }
            let root = program.roots[info.root]
            guard root.firstSlot..<root.firstSlot + root.slotCount ~= field.slot else { return }
            var value: UInt64?
            if case .number(let number, _) = right { value = number }
            if case .constant(let number, _)? = resolve(right, scope) { value = number }
            guard let value else { return }
            info.fixed.append((field.slot, value))
            if isRequired { info.required.append(field.slot) }
        default: break
        }
    }

    /// Peels calls off `expression` down to a field; nil when one of them has no inverse.
    private mutating func solve(_ expression: Expression) -> (Expression, [Step])? {
        switch expression {
        case .name, .member: return (expression, [])
        case .call(let name, let arguments, _):
            if name.text == "unpad", let first = arguments.first {
                guard let (inner, steps) = solve(first) else { return nil }
                return (inner, [.unpad(arguments.count > 1 ? arguments[1] : nil)] + steps)
            }
            guard let symbol = lookUp(name.text), case .transform(let it) = symbol.declaration, let last = arguments.last else {
                return nil
            }
            guard let inverse = it.inverse else {
                diagnostics.add(
                    .notEncodable, name.place, "\(name.text) names no inverse, so what it gives can be read and not written",
                    severity: .warn,
                    see: ("declared here", it.name.place))
                return nil
            }
            guard let (inner, steps) = solve(last) else { return nil }
            return (inner, [.transform(inverse.text, arguments.dropLast(), it.parameters)] + steps)
        default: return nil
        }
    }

    private mutating func undo(_ steps: [Step], _ count: Int, _ slot: Int, _ scope: Scope) {
        guard count > 0 else { return emit(.slotBytes, b: slot) }
        switch steps[count - 1] {
        case .unpad(let block):
            undo(steps, count - 1, slot, scope)
            if let block { number(block, scope) } else { emit(.push, c: 8) }
            emit(.pad)
        case .transform(let inverse, let arguments, let parameters):
            for (argument, parameter) in zip(arguments, parameters) {
                let width = ["u8": 1, "u16": 2, "u32": 4][parameter.type.text] ?? 0
                octets(argument, scope, width: infer(argument, scope).isOctets ? 0 : width)
            }
            undo(steps, count - 1, slot, scope)
            emit(.transform, b: transformNumber(inverse, parameters.count))
        }
    }

    private mutating func transformNumber(_ name: String, _ parameters: Int) -> Int {
        if let number = program.transforms.firstIndex(where: { $0.name == name }) { return number }
        program.transforms.append(TransformInfo(name: name, parameters: parameters))
        return program.transforms.count - 1
    }

    /// When a message is written, what is asked to be there will be there.
    private func assumingPresence(_ expression: Expression) -> Expression {
        switch expression {
        case .call(let name, _, let place) where name.text == "has": return .number(1, place)
        case .binary(let op, let left, let right, let place):
            return .binary(op, assumingPresence(left), assumingPresence(right), place)
        default: return expression
        }
    }
}
