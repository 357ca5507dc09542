// SPDX-License-Identifier: MIT

import GrammarRuntime

/// How much a type takes: what it needs, or all there is.
enum Extent { case bounded, open }

extension Compiler {
    // MARK: Roots

    /// Makes messages, dictionaries and choices of a grammar things that a parse can begin with.
    mutating func entry(_ declaration: Declaration) {
        switch declaration {
        case .message, .tags, .choice: break
        default: return
        }
        let name = declaration.name
        let number = root(
            .named(grammar: nil, name), called: "\(grammar).\(lowerFirst(name.text))", parent: -1, unnamed: false,
            place: name.place,
            isEntry: true)
        program.roots[number].name = "\(grammar).\(name.text)"
        entries["\(grammar).\(name.text)"] = number
        guard case .message(let message) = declaration, let ok = message.ok, let shape = shapes[number] else { return }
        program.roots[number].okCode = aside { compiler in
            compiler.condition(ok, Scope(shapes: [shape]))
            compiler.emit(.done)
        }
    }

    func lowerFirst(_ text: String) -> String {
        // An abbreviation stays as it is written: ATR, but command for Command.
        if text.count > 1, text.prefix(2).allSatisfy(\.isUppercase) {
            return text.allSatisfy(\.isUppercase) ? text.lowercased() : text
        }
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// Puts an instance of `type` into the program and gives its number.
    mutating func root(_ type: TypeSyntax, called name: String, parent: Int, unnamed: Bool, place: Place, isEntry: Bool) -> Int {
        let first = program.slotNodes.count
        let node = node(name, .root, parent: parent, place: place, flags: unnamed ? .unnamed : [])
        let shape = Shape()
        let start = aside { compiler in
            compiler.emit(.begin, b: node)
            let clear = compiler.hole(.clear, b: first)
            _ = compiler.content(type, node, shape, isRoot: true)
            compiler.emit(.close, a: 1)
            compiler.emit(.done)
            if compiler.program.code.indices.contains(clear) {
                compiler.program.code[clear].c = Int32(truncatingIfNeeded: compiler.program.slotNodes.count - first)
            }
        }
        var info = RootInfo(name: name, node: node, code: start, isEntry: isEntry)
        info.firstSlot = first
        info.slotCount = program.slotNodes.count - first
        program.roots.append(info)
        shapes[program.roots.count - 1] = shape
        return program.roots.count - 1
    }

    /// The name under which an instance of a type hangs in paths, nil when it takes its parent's.
    func rootName(_ type: TypeSyntax) -> String? {
        guard case .named(let named, let name) = type else { return nil }
        let owner = named?.text ?? lookUp(name.text)?.grammar ?? grammar
        return "\(owner).\(lowerFirst(name.text))"
    }

    // MARK: What stands inside a composite

    /// The fields of `type`, directly under `parent`.
    mutating func content(_ type: TypeSyntax, _ parent: Int, _ shape: Shape, isRoot: Bool) -> Extent {
        switch type {
        case .inline(let list, _): return items(list, parent, shape)
        case .tags(let entries, _):
            tagTable(entries, .ber, parent, shape, name: nil)
            return .open
        case .named(let named, let name):
            guard let symbol = find(named, name, "type") else { return .bounded }
            let saved = (grammar, file)
            defer { (grammar, file) = saved }
            grammar = symbol.grammar
            switch symbol.declaration {
            case .message(let message):
                guard enter(symbol.grammar + "." + name.text, name.place) else { return .bounded }
                defer { stack.removeLast() }
                return items(message.items, parent, shape)
            case .tags(let tags):
                if let open = stack.last(where: { $0.name == symbol.grammar + "." + name.text }) {
                    emit(.tlv, b: open.table)
                    shape.transparent.append(open.shape)
                    return .open
                }
                tagTable(tags.entries, tags.dialect, parent, shape, name: symbol.grammar + "." + name.text)
                return .open
            case .choice(let choice):
                guard enter(symbol.grammar + "." + name.text, name.place) else { return .bounded }
                defer { stack.removeLast() }
                if isRoot || program.nodes[parent].kind == .composite { program.nodes[parent].kind = .choice }
                return self.choice(choice, parent, shape)
            case .enumeration: break
            default:
                diagnostics.add(
                    .type, name.place, "expected a type, found the \(symbol.declaration.kind) \(name.text)",
                    see: ("declared here", symbol.declaration.name.place))
                return .bounded
            }
        default: break
        }
        // A scalar stands alone under the name of what holds it.
        let field = FieldSyntax(name: Name(text: "_", place: type.place), type: type)
        let leaf = Shape()
        let extent = self.field(field, parent, leaf)
        if let only = leaf.fields["_"] { shape.fields["_"] = only }
        return extent
    }

    private mutating func enter(_ name: String, _ place: Place) -> Bool {
        if stack.contains(where: { $0.name == name }) {
            diagnostics.add(.size, place, "\(name) holds itself: only tags may nest without end")
            return false
        }
        guard stack.count < 32 else {
            diagnostics.add(.tooLarge, place, "types nest deeper than 32")
            return false
        }
        stack.append((name, -1, Shape()))
        return true
    }

    private mutating func items(_ list: [ItemSyntax], _ parent: Int, _ shape: Shape) -> Extent {
        var open: Name?
        var derived: [(FieldSyntax, Int)] = []
        let outer = later
        later = list.compactMap { if case .field(let it) = $0 { it.name.text } else { nil } }
        defer { later = outer }
        let scope = Scope(shapes: [shape], inStructure: true, later: later)
        for item in list {
            guard !isTooLarge else { return .bounded }
            switch item {
            case .check(let syntax): check(syntax, scope)
            case .field(let syntax):
                if let first = shape.fields[syntax.name.text], syntax.name.text != "_", shape.openAlternatives == 0 {
                    diagnostics.add(
                        .duplicate, syntax.name.place, "\(syntax.name.text) is declared twice",
                        see: ("declared here", first.place))
                }
                if let open {
                    diagnostics.add(
                        .size, syntax.name.place,
                        "\(open.text) takes all that is left, so \(syntax.name.text) can never have a byte",
                        see: ("give this one a size, like bytes(remaining - 2)", open.place))
                }
                var skip: Int?
                if let condition = syntax.condition {
                    self.condition(condition, scope)
                    skip = hole(.when)
                }
                if field(syntax, parent, shape) == .open, skip == nil { open = syntax.name }
                guard let made = shape.fields[syntax.name.text] else { continue }
                if let skip {
                    land(skip)
                    if program.code.indices.contains(skip) { program.code[skip].b = UInt16(truncatingIfNeeded: made.node) }
                    program.nodes[made.node].flags.insert(.optional)
                }
                if syntax.value != nil { derived.append((syntax, made.node)) }
            }
        }
        for (syntax, node) in derived { derive(syntax, node, shape) }
        return open == nil ? .bounded : .open
    }

    /// A field that follows from others: compared when read, worked out when written.
    private mutating func derive(_ syntax: FieldSyntax, _ node: Int, _ shape: Shape) {
        guard let value = syntax.value else { return }
        program.nodes[node].flags.insert(.derived)
        if describe(value).contains("count(") { program.nodes[node].flags.insert(.counting) }
        let scope = Scope(shapes: [shape])
        let isOctets = infer(value, scope).isOctets
        if isOctets, case .number? = shape.fields[syntax.name.text]?.kind {
            diagnostics.add(.type, value.place, "expected a number for \(syntax.name.text), found bytes")
            return
        }
        var check = CheckInfo()
        check.place = grammarPlace(syntax.name.place)
        check.slot = Int(program.nodes[node].slot)
        check.severity = .warn
        program.checks.append(check)
        let skip = hole(.derive, b: node)
        if program.code.indices.contains(skip) { program.code[skip].a = isOctets ? 1 : 0 }
        if isOctets { octets(value, scope) } else { number(value, scope) }
        emit(.same, a: isOctets ? 1 : 0, b: node, c: program.checks.count - 1)
        land(skip)
    }

    // MARK: Fields

    mutating func field(_ syntax: FieldSyntax, _ parent: Int, _ shape: Shape) -> Extent {
        var flags: NodeFlags = []
        if syntax.isNonce { flags.insert(.nonce) }
        if syntax.isSecret { flags.insert(.secret) }
        let scope = Scope(shapes: [shape], inStructure: true, later: later)
        func make(_ compiler: inout Compiler, _ kind: NodeKind, _ fieldKind: Field.Kind, size: Int = 0, inner: Shape? = nil)
            -> Int
        {
            let node = compiler.node(
                syntax.name.text, kind, parent: parent, place: syntax.name.place, flags: flags, label: syntax.label?.text)
            compiler.program.nodes[node].size = UInt16(truncatingIfNeeded: size)
            compiler.add(syntax.name, node, fieldKind, shape, isSecret: syntax.isSecret, size: size, inner: inner)
            return node
        }
        switch syntax.type {
        case .number(let octets, let littleEndian, _):
            let node = make(&self, .number, .number(bits: octets * 8), size: octets)
            emit(.uint, a: octets | (littleEndian ? 0x80 : 0), b: node)
            return .bounded
        case .filling:
            let node = make(&self, .number, .number(bits: 0))
            emit(.number, b: node)
            return .open
        case .bits(let width, let bits, let place):
            // Without a name of its own, a group's fields are its message's.
            let inner = syntax.name.text == "_" ? shape : Shape()
            let node = make(&self, .bits, .number(bits: width), size: width / 8, inner: inner === shape ? nil : inner)
            if width % 8 != 0 || width == 0 || width > 64 || bits.reduce(0, { $0 + $1.width }) != width {
                diagnostics.add(
                    .size, place,
                    "expected bit fields of \(width) bits in all, whole bytes and at most 64, found \(bits.reduce(0) { $0 + $1.width })"
                )
            }
            emit(.bits, a: width / 8, b: node)
            for bit in bits { self.bit(bit, node, inner) }
            emit(.close)
            return .bounded
        case .octets(let kind, let count, let inner, _):
            return octetsField(syntax, kind, count, inner, scope, make)
        case .list(let count, let type, _):
            let inner = Shape()
            let node = make(&self, .composite, .composite, inner: inner)
            emit(.begin, b: node)
            if let count { number(count, scope) }
            emit(.enter, a: count == nil ? 0 : 1)
            let head = hole(.more)
            // Each turn begins with the item itself, so that writing can tell whether there is another.
            _ = field(FieldSyntax(name: Name(text: "_", place: syntax.name.place), type: type), node, inner)
            emit(.again, c: head)
            land(head)
            emit(.close)
            if let item = inner.fields["_"]?.shape { inner.transparent.append(item) }
            return count == nil ? .open : .bounded
        case .inline, .tags: return composite(syntax, .composite, shape, make)
        case .named(let named, let name):
            guard let symbol = find(named, name, "type") else {
                // The name stands for something, so that its uses are not mistakes too.
                _ = make(&self, .octets, .octets)
                return .bounded
            }
            if case .enumeration(let it) = symbol.declaration {
                let bytes = it.bits / 8
                if it.bits % 8 != 0 {
                    diagnostics.add(
                        .size, name.place, "\(name.text) has \(it.bits) bits: it belongs into bits(n) { ... }",
                        see: ("declared here", it.name.place))
                }
                if it.isClosed { flags.insert(.closedEnum) }
                let node = make(&self, .number, .number(bits: it.bits), size: max(1, bytes))
                program.nodes[node].enumeration = Int32(truncatingIfNeeded: symbol.number)
                emit(.uint, a: max(1, bytes), b: node)
                return .bounded
            }
            if case .choice = symbol.declaration { return composite(syntax, .choice, shape, make) }
            return composite(syntax, .composite, shape, make)
        }
    }

    private mutating func composite(
        _ syntax: FieldSyntax, _ kind: NodeKind, _ shape: Shape,
        _ make: (inout Compiler, NodeKind, Field.Kind, Int, Shape?) -> Int
    ) -> Extent {
        let inner = syntax.name.text == "_" ? shape : Shape()
        let node = make(&self, kind, .composite, 0, inner === shape ? nil : inner)
        emit(.begin, b: node)
        let extent = content(syntax.type, node, inner, isRoot: false)
        emit(.close)
        if inner === shape { return extent }
        var isTransparent = kind == .choice
        if case .inline = syntax.type { isTransparent = true }
        if isTransparent { shape.transparent.append(inner) }
        return extent
    }

    private mutating func octetsField(
        _ syntax: FieldSyntax, _ kind: NodeKind, _ count: Expression?, _ inner: TypeSyntax?, _ scope: Scope,
        _ make: (inout Compiler, NodeKind, Field.Kind, Int, Shape?) -> Int
    ) -> Extent {
        var size = 0
        if case .number(let value, _)? = count { size = Int(clamping: min(value, 65_535)) }
        if let inner {
            let shape = Shape()
            let node = make(&self, .composite, .composite, 0, shape)
            emit(.begin, b: node)
            if let count {
                number(count, scope)
                emit(.limit)
            }
            _ = content(inner, node, shape, isRoot: false)
            if count != nil { emit(.endLimit) }
            emit(.close)
            return count == nil ? .open : .bounded
        }
        let node = make(&self, kind, .octets, size, nil)
        guard let count else {
            emit(.rest, b: node)
            return .open
        }
        number(count, scope)
        emit(.bytes, b: node)
        return .bounded
    }

    private mutating func bit(_ syntax: BitSyntax, _ parent: Int, _ shape: Shape) {
        let node = node(syntax.name.text, .bit, parent: parent, place: syntax.name.place, label: syntax.label?.text)
        program.nodes[node].size = UInt16(truncatingIfNeeded: syntax.width)
        add(syntax.name, node, .number(bits: syntax.width), shape, isSecret: false, size: 0, inner: nil)
        if let type = syntax.type, let symbol = find(nil, type, "enumeration") {
            if case .enumeration(let it) = symbol.declaration, it.bits == syntax.width {
                program.nodes[node].enumeration = Int32(truncatingIfNeeded: symbol.number)
            } else {
                diagnostics.add(
                    .type, type.place, "expected an enumeration of bits(\(syntax.width))",
                    see: ("declared here", symbol.declaration.name.place))
            }
        }
        emit(.bit, a: syntax.width, b: node)
    }

    private mutating func add(
        _ name: Name, _ node: Int, _ kind: Field.Kind, _ shape: Shape, isSecret: Bool, size: Int, inner: Shape?
    ) {
        let shared = shape.fields[name.text]
        let slot = slot(for: node, sharing: shared?.slot)
        if shared == nil, name.text != "_" { shape.order.append(name.text) }
        shape.fields[name.text] = Field(
            slot: slot, node: node, kind: kind, isSecret: isSecret, size: size, shape: inner ?? shared?.shape, place: name.place)
    }
}
