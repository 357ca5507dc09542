// SPDX-License-Identifier: MIT

import GrammarRuntime

/// A set of grammars, compiled together.
public struct GrammarSet: Sendable {
    public let program: Program
    /// Every mistake and doubtful point, in the order of files and places.
    public let diagnostics: [GrammarDiagnostic]
    public var hasErrors: Bool { diagnostics.contains { $0.severity == .error } }

    /// Compiles files that may use one another. The program holds what could be understood; with errors it is not to be used.
    ///
    /// - Parameters:
    ///   - sources: in any order.
    ///   - registry: knows the transforms that the grammars declare; their signatures are compared.
    ///   - runningExamples: decodes every example and compares it with what it expects.
    public static func compile(
        _ sources: [GrammarSource], transforms registry: any TransformRegistry = StandardTransforms(),
        runningExamples: Bool = true
    ) -> GrammarSet {
        var compiler = Compiler(sources: sources, registry: registry)
        compiler.compile()
        if runningExamples, !compiler.diagnostics.hasErrors { compiler.runExamples() }
        compiler.diagnostics.sort()
        return GrammarSet(program: Program(compiler.program), diagnostics: compiler.diagnostics.list)
    }
}

/// What one grammar declares under one name.
struct Symbol {
    var declaration: Declaration
    var grammar: String
    /// Number among the exchanges, layers, transforms or enumerations of the program.
    var number = -1
}

/// The fields that an instance of a type has.
final class Shape {
    var fields: [String: Field] = [:]
    var order: [String] = []
    /// Shapes whose fields count as this one's: of choices and of inline groups.
    var transparent: [Shape] = []
    /// Above 0 while the alternatives of a choice are put into this shape: their fields may have equal names.
    var openAlternatives = 0

    /// The field called `name`, here or in a group or choice of this shape.
    func find(_ name: String, _ depth: Int = 0) -> Field? {
        if let field = fields[name] { return field }
        guard depth < 16 else { return nil }
        for shape in transparent { if let field = shape.find(name, depth + 1) { return field } }
        return nil
    }

    func names(_ depth: Int = 0) -> [String] {
        guard depth < 16 else { return [] }
        return order + transparent.flatMap { $0.names(depth + 1) }
    }
}

struct Field {
    enum Kind { case number(bits: Int), octets, composite }
    var slot: Int
    var node: Int
    var kind: Kind
    var isSecret = false
    var size = 0
    var shape: Shape?
    var place: Place
}

struct Compiler {
    var program = ProgramTables()
    var diagnostics: Diagnostics
    var files: [SyntaxFile] = []
    let registry: any TransformRegistry
    /// By grammar, then by name.
    var symbols: [String: [String: Symbol]] = [:]
    var uses: [String: [String]] = [:]
    /// Shapes of the roots of the program, by their number.
    var shapes: [Int: Shape] = [:]
    var entries: [String: Int] = [:]
    /// Types being instantiated, so that one that holds itself is found.
    var stack: [(name: String, table: Int, shape: Shape)] = []
    var words: [String: Int] = [:]
    var isTooLarge = false
    var grammar = ""
    var file = 0
    /// Fields of the message at work, so that one that is used too early is told from one that does not exist.
    var later: [String] = []
    /// Slots that a match of the layer clause at work fills in.
    var matched: [Int] = []
    /// What an exchange's expressions see, and its guard, by number.
    var exchangeScopes: [(scope: Scope, condition: Expression?)] = []
    var examples: [(syntax: ExampleSyntax, grammar: String)] = []
    /// Exchanges that have an example.
    var exampled: Set<String> = []

    init(sources: [GrammarSource], registry: any TransformRegistry) {
        diagnostics = Diagnostics(sources: sources)
        self.registry = registry
        for (name, node) in Node.fixed {
            var node = node
            node.name = Int32(truncatingIfNeeded: word(name))
            program.nodes.append(node)
        }
    }

    mutating func compile() {
        for (index, source) in diagnostics.sources.enumerated() { files.append(Parser.parse(source, file: index, &diagnostics)) }
        program.files = diagnostics.sources.map(\.name)
        collect()
        inGrammars { compiler, declaration in
            if case .enumeration(let it) = declaration { compiler.enumeration(it) }
            if case .transform(let it) = declaration { compiler.transform(it) }
        }
        // Numbered before anything asks for their states.
        var sessions = 0
        inGrammars { compiler, declaration in
            guard case .session(let it) = declaration else { return }
            compiler.symbols[compiler.grammar]?[it.name.text]?.number = sessions
            sessions += 1
        }
        inGrammars { compiler, declaration in compiler.entry(declaration) }
        inGrammars { compiler, declaration in if case .exchange(let it) = declaration { compiler.exchange(it) } }
        inGrammars { compiler, declaration in if case .layer(let it) = declaration { compiler.declareLayer(it) } }
        inGrammars { compiler, declaration in
            switch declaration {
            case .layer(let it): compiler.layer(it)
            case .gather(let it): compiler.gather(it)
            default: break
            }
        }
        inGrammars { compiler, declaration in if case .session(let it) = declaration { compiler.session(it) } }
        inGrammars { compiler, declaration in if case .example(let it) = declaration { compiler.example(it) } }
        finish()
    }

    private mutating func inGrammars(_ body: (inout Compiler, Declaration) -> Void) {
        for syntax in files {
            grammar = syntax.grammar?.text ?? "grammar\(syntax.file)"
            file = syntax.file
            for declaration in syntax.declarations {
                guard !isTooLarge else { return }
                body(&self, declaration)
            }
        }
    }

    private mutating func collect() {
        for syntax in files {
            let start = Place(file: syntax.file)
            if syntax.grammar == nil { diagnostics.add(.syntax, start, "expected 'grammar' and a name at the start of the file") }
            let name = syntax.grammar?.text ?? "grammar\(syntax.file)"
            if symbols[name] != nil, let place = syntax.grammar?.place {
                diagnostics.add(.duplicate, place, "another file is grammar \(name) already")
            }
            var table = symbols[name] ?? [:]
            for declaration in syntax.declarations {
                if case .example = declaration { continue }
                let key = declaration.name.text
                if let first = table[key] {
                    diagnostics.add(
                        .duplicate, declaration.name.place, "\(key) is declared twice",
                        see: ("declared here", first.declaration.name.place))
                } else {
                    table[key] = Symbol(declaration: declaration, grammar: name)
                }
            }
            symbols[name] = table
            uses[name, default: []] += syntax.uses.map(\.text)
            program.grammars.append(GrammarInfo(name: name, citations: syntax.citations.map(\.text), file: syntax.file))
        }
        for syntax in files {
            for use in syntax.uses where symbols[use.text] == nil {
                let hint = nearest(use.text, symbols.keys).map { "; did you mean '\($0)'?" } ?? ""
                diagnostics.add(.unknownName, use.place, "there is no grammar \(use.text)\(hint)")
            }
            if syntax.citations.isEmpty, let name = syntax.grammar {
                diagnostics.add(.uncited, name.place, "grammar \(name.text) cites no standard", severity: .warn)
            }
        }
    }

    /// What `name` means here: this grammar first, then those it uses.
    mutating func find(_ grammarName: Name?, _ name: Name, _ what: String) -> Symbol? {
        if let grammarName {
            if let symbol = symbols[grammarName.text]?[name.text] { return symbol }
            let known = symbols[grammarName.text]
            let hint = nearest(name.text, known.map { Array($0.keys) } ?? []).map { "; did you mean '\($0)'?" } ?? ""
            diagnostics.add(
                .unknownName, name.place,
                known == nil
                    ? "there is no grammar \(grammarName.text)" : "there is no \(what) \(name.text) in \(grammarName.text)\(hint)"
            )
            return nil
        }
        if let symbol = lookUp(name.text) { return symbol }
        var candidates = Array((symbols[grammar] ?? [:]).keys)
        for use in uses[grammar] ?? [] { candidates += (symbols[use] ?? [:]).keys }
        candidates += ["u8", "u16", "u24", "u32", "u64", "uint", "bytes", "rest", "ascii", "bcd", "repeat", "bits"]
        let near = nearest(name.text, candidates.sorted())
        diagnostics.add(
            .unknownName, name.place, "there is no \(what) \(name.text)\(near.map { "; did you mean '\($0)'?" } ?? "")",
            see: near.flatMap { lookUp($0)?.declaration.name.place }.map { ("declared here", $0) })
        return nil
    }

    func lookUp(_ name: String) -> Symbol? {
        if let symbol = symbols[grammar]?[name] { return symbol }
        for use in uses[grammar] ?? [] { if let symbol = symbols[use]?[name] { return symbol } }
        return nil
    }

    // MARK: Pieces of the program

    mutating func word(_ text: String) -> Int {
        if let index = words[text] { return index }
        program.strings.append(text)
        words[text] = program.strings.count - 1
        return program.strings.count - 1
    }

    mutating func emit(_ op: Opcode, a: Int = 0, b: Int = 0, c: Int = 0) {
        guard program.code.count < 250_000 else {
            if !isTooLarge {
                diagnostics.add(.tooLarge, Place(file: file), "the grammar grows too large when its types are put in place")
            }
            isTooLarge = true
            return
        }
        program.code.append(Instruction(op, a: UInt8(truncatingIfNeeded: a), b: b, c: c))
    }

    /// Emits a jump whose target is set by ``land(_:)``.
    mutating func hole(_ op: Opcode, b: Int = 0) -> Int {
        emit(op, b: b)
        return program.code.count - 1
    }

    mutating func land(_ hole: Int) {
        if program.code.indices.contains(hole) { program.code[hole].c = Int32(truncatingIfNeeded: program.code.count) }
    }

    /// Emits instructions that are reached by their place only, and gives that place.
    mutating func aside(_ body: (inout Compiler) -> Void) -> Int {
        let jump = hole(.jump)
        let start = program.code.count
        body(&self)
        land(jump)
        return start
    }

    mutating func node(_ name: String, _ kind: NodeKind, parent: Int, place: Place, flags: NodeFlags = [], label: String? = nil)
        -> Int
    {
        guard program.nodes.count < 60_000 else {
            if !isTooLarge { diagnostics.add(.tooLarge, place, "the grammar grows too large when its types are put in place") }
            isTooLarge = true
            return 0
        }
        var node = Node()
        node.name = Int32(truncatingIfNeeded: word(name))
        node.label = label.map { Int32(truncatingIfNeeded: word($0)) } ?? -1
        node.parent = Int32(truncatingIfNeeded: parent)
        node.kind = kind
        node.flags = name == "_" ? flags.union(.unnamed) : flags
        node.grammar = Int32(truncatingIfNeeded: word(grammar))
        let position = grammarPlace(place)
        node.file = Int16(truncatingIfNeeded: position.file)
        node.line = Int32(truncatingIfNeeded: position.line)
        node.column = Int16(truncatingIfNeeded: position.column)
        program.nodes.append(node)
        return program.nodes.count - 1
    }

    func grammarPlace(_ place: Place) -> GrammarPlace {
        guard diagnostics.sources.indices.contains(place.file) else { return GrammarPlace() }
        let (line, column) = diagnostics.sources[place.file].position(place.start)
        return GrammarPlace(file: place.file, line: line, column: column)
    }

    mutating func slot(for node: Int, sharing shared: Int? = nil) -> Int {
        let slot = shared ?? program.slotNodes.count
        if shared == nil { program.slotNodes.append([]) }
        program.slotNodes[slot].append(node)
        program.nodes[node].slot = Int32(truncatingIfNeeded: slot)
        program.slotCount = program.slotNodes.count
        return slot
    }

    // MARK: Enumerations and transforms

    private mutating func enumeration(_ syntax: EnumSyntax) {
        var entries: [Enumeration.Entry] = []
        let all: UInt64 = (1 << UInt64(syntax.bits)) - 1
        var values: [UInt64: Place] = [:]
        var names: [String: Place] = [:]
        for (index, entry) in syntax.entries.enumerated() {
            let isExact = entry.mask & all == all
            if entry.value > all {
                diagnostics.add(.size, entry.place, "expected a value of \(syntax.bits) bits")
            }
            if isExact, let first = values[entry.value] {
                diagnostics.add(.duplicate, entry.place, "this value has a name already", see: ("named here", first))
            }
            if !isExact,
                let earlier = syntax.entries[..<index].first(where: {
                    $0.mask & all != all && $0.mask & entry.mask == $0.mask && entry.value & $0.mask == $0.value
                })
            {
                diagnostics.add(
                    .unreachable, entry.place, "every value here has a name already", see: ("named here", earlier.place))
            }
            if let first = names[entry.name.text] {
                diagnostics.add(
                    .duplicate, entry.name.place, "\(entry.name.text) is declared twice", see: ("declared here", first))
            }
            names[entry.name.text] = entry.name.place
            if isExact { values[entry.value] = entry.place }
            if let text = entry.text {
                for part in text.text.split(separator: "{").dropFirst() where !part.hasPrefix("low}") || isExact {
                    diagnostics.add(
                        .unknownName, text.place, "expected {low}, the part under '?', found {\(part.prefix { $0 != "}" })}")
                }
            }
            entries.append(
                .init(value: entry.value, mask: entry.mask & all, name: word(entry.name.text), text: entry.text?.text ?? ""))
        }
        symbols[grammar]?[syntax.name.text]?.number = program.enumerations.count
        program.enumerations.append(
            Enumeration(name: "\(grammar).\(syntax.name.text)", bits: syntax.bits, isClosed: syntax.isClosed, entries: entries))
    }

    private mutating func transform(_ syntax: TransformSyntax) {
        symbols[grammar]?[syntax.name.text]?.number = program.transforms.count
        program.transforms.append(TransformInfo(name: syntax.name.text, parameters: syntax.parameters.count))
        guard let known = registry.transform(named: syntax.name.text) else {
            let hint = nearest(syntax.name.text, StandardTransforms.table.keys.sorted()).map { "; did you mean '\($0)'?" } ?? ""
            diagnostics.add(.unknownName, syntax.name.place, "no plug-in is called \(syntax.name.text)\(hint)")
            return
        }
        if known.parameters.count != syntax.parameters.count {
            diagnostics.add(
                .type, syntax.name.place,
                "expected \(known.parameters.count) parameters, as the plug-in has, found \(syntax.parameters.count)")
        }
        if (known.result == .key) != (syntax.result.text == "key") {
            diagnostics.add(
                .type, syntax.result.place, "expected \(known.result == .key ? "key" : "bytes"), found '\(syntax.result.text)'")
        }
        for (parameter, kind) in zip(syntax.parameters, known.parameters) where kind == .key && parameter.type.text != "key" {
            diagnostics.add(.type, parameter.type.place, "expected key, found '\(parameter.type.text)'")
        }
        if syntax.inverse?.text != known.inverse, let inverse = syntax.inverse {
            diagnostics.add(.type, inverse.place, "expected \(known.inverse ?? "no inverse"), found '\(inverse.text)'")
        }
    }
}
