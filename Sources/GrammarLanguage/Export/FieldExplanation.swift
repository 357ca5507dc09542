// SPDX-License-Identifier: MIT

import GrammarRuntime

/// Where the value of a field comes from when a message is written: rule 4, as a person asks for it.
public struct FieldExplanation: Sendable, Equatable {
    public enum Origin: Sendable, Equatable {
        /// Whoever writes the message chooses it.
        case free
        /// Always this.
        case constant(UInt64)
        /// Follows from others, as the line of the grammar says.
        case derived(line: Int)
        /// Only ever read, and why.
        case readOnly(why: String)
    }

    public let path: String
    public let origin: Origin
    /// The file, line and column of its declaration.
    public let file: String
    public let line: Int
    public let column: Int
    /// More that is true of it: drawn at random, secret, what it depends on.
    public let remarks: [String]

    /// `free`, `constant 00`, `derived from line 12`, `read-only because ...`.
    public var sentence: String {
        switch origin {
        case .free: "free"
        case .constant(let value): "constant \(String(value, radix: 16, uppercase: true))h"
        case .derived(let line): "derived from line \(line)"
        case .readOnly(let why): "read-only because \(why)"
        }
    }

    /// Every declaration of the field that `name` means: its whole path, or the end of one.
    ///
    /// - Parameter program: compiled without errors.
    public static func of(_ name: String, in program: Program, transforms registry: any TransformRegistry = StandardTransforms())
        -> [FieldExplanation]
    {
        let finder = Explainer(program: program, registry: registry)
        var result: [FieldExplanation] = []
        for node in program.nodes.indices where node > Int(Node.value) {
            let info = program.nodes[node]
            guard !info.flags.contains(.unnamed), ![.root, .alternative].contains(info.kind) else { continue }
            let path = program.path(node)
            guard path == name || path.hasSuffix("." + name) else { continue }
            let made = finder.explain(node, path)
            if !result.contains(where: {
                $0.path == made.path && $0.line == made.line && $0.file == made.file && $0.origin == made.origin
            }) {
                result.append(made)
            }
        }
        return result
    }

    /// The paths that a field can be asked for by.
    public static func paths(in program: Program) -> [String] {
        var seen: Set<String> = []
        return program.nodes.indices.dropFirst(Int(Node.value) + 1).compactMap { node in
            guard !program.nodes[node].flags.contains(.unnamed) else { return nil }
            let path = program.path(node)
            return seen.insert(path).inserted ? path : nil
        }
    }
}

struct Explainer {
    let program: Program
    let registry: any TransformRegistry

    func explain(_ node: Int, _ path: String) -> FieldExplanation {
        let info = program.nodes[node]
        var remarks: [String] = []
        if info.flags.contains(.nonce) { remarks.append("drawn at random") }
        if info.flags.contains(.secret) { remarks.append("secret: never shown") }
        if info.flags.contains(.optional) { remarks.append("may be absent") }
        if info.enumeration >= 0 { remarks.append("one of \(program.enumerations[Int(info.enumeration)].name)") }
        let (origin, sources) = origin(node)
        if !sources.isEmpty { remarks.append("depends on \(sources.joined(separator: ", "))") }
        let place = info.place
        return FieldExplanation(
            path: path, origin: origin, file: program.files.indices.contains(place.file) ? program.files[place.file] : "",
            line: place.line, column: place.column, remarks: remarks)
    }

    private func origin(_ node: Int) -> (FieldExplanation.Origin, [String]) {
        if let why = closed(node) { return (.readOnly(why: why), []) }
        for (pc, step) in program.code.enumerated() where step.op == .derive && Int(step.b) == node {
            let body = (pc + 1)..<max(pc + 1, min(Int(step.c), program.code.count))
            if body.count == 2, program.code[pc + 1].op == .push {
                return (.constant(UInt64(clamping: program.code[pc + 1].c)), [])
            }
            if body.count == 2, program.code[pc + 1].op == .constant {
                return (.constant(UInt64(bitPattern: program.constants[Int(program.code[pc + 1].b)])), [])
            }
            return (.derived(line: program.nodes[node].place.line), sources(body))
        }
        let slot = Int(program.nodes[node].slot)
        for check in program.checks where check.isMatch && check.slot == slot && slot >= 0 && check.expression >= 0 {
            var end = check.expression
            while end < program.code.count, program.code[end].op != .match { end += 1 }
            return (.derived(line: check.place.line), sources(check.expression..<end))
        }
        return (.free, [])
    }

    private func sources(_ range: Range<Int>) -> [String] {
        var result: [String] = []
        for pc in range {
            let step = program.code[pc]
            var names: [String] = []
            switch step.op {
            case .slotNumber, .slotIs, .slotCount, .slotBytes, .slotRaw: names = [Int(step.b)].compactMap(name)
            case .slotRange: names = [Int(step.b), Int(step.c)].compactMap(name)
            case .before: names = ["everything before it"]
            case .variable: names = [program.strings[program.variables[Int(step.b)].name]]
            default: break
            }
            for name in names where !result.contains(name) { result.append(name) }
        }
        return result
    }

    private func name(_ slot: Int) -> String? {
        program.slotNodes.indices.contains(slot) ? program.slotNodes[slot].first.map { program.path($0) } : nil
    }

    /// Why a field behind `open` cannot be written: its transform has no inverse.
    private func closed(_ node: Int) -> String? {
        var top = node
        while program.nodes[top].parent >= 0 { top = Int(program.nodes[top].parent) }
        guard let root = program.roots.firstIndex(where: { $0.node == top }) else { return nil }
        for (number, open) in program.opens.enumerated() where open.root == root && open.hasTransform {
            guard let pc = program.code.firstIndex(where: { $0.op == .open && Int($0.b) == number }) else { continue }
            guard pc > 0, program.code[pc - 1].op == .transform else { continue }
            let name = program.transforms[Int(program.code[pc - 1].b)].name
            if registry.transform(named: name)?.inverse == nil { return "it is reached through \(name), which has no inverse" }
        }
        return nil
    }
}
