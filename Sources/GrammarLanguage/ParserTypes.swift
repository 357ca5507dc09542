// SPDX-License-Identifier: MIT

import GrammarRuntime

extension Parser {
    mutating func enumeration() throws(ParseStop) -> EnumSyntax {
        var result = EnumSyntax(name: try name("the enumeration's name"))
        try require(":")
        let type = try name("u8, u16, u24, u32 or bits(n)")
        switch type.text {
        case "u8": result.bits = 8
        case "u16": result.bits = 16
        case "u24": result.bits = 24
        case "u32": result.bits = 32
        case "bits":
            try require("(")
            // Up to 56 bits, so that shifts and sums stay inside 64 and a DF name of seven bytes has room.
            result.bits = Int(clamping: min(56, try number("a number of bits").value))
            try require(")")
        default:
            diagnostics.add(.type, type.place, "expected u8, u16, u24, u32 or bits(n), found '\(type.text)'")
        }
        result.isClosed = accept("closed")
        try block { parser throws(ParseStop) in
            let place = parser.current.place
            let (value, mask) = try parser.number("a value, like 0xA4 or 0x61??")
            let name = try parser.name("a name for the value")
            result.entries.append(.init(value: value, mask: mask, name: name, text: parser.optionalString(), place: place))
        }
        return result
    }

    mutating func message() throws(ParseStop) -> MessageSyntax {
        var result = MessageSyntax(name: try name("the message's name"))
        var ok: Expression?
        var items: [ItemSyntax] = []
        try block { parser throws(ParseStop) in
            if parser.at("ok"), parser.peek(1).text == "when" {
                parser.advance()
                parser.advance()
                ok = try parser.expression()
            } else {
                items.append(try parser.item())
            }
        }
        result.items = items
        result.ok = ok
        return result
    }

    mutating func items() throws(ParseStop) -> [ItemSyntax] {
        var items: [ItemSyntax] = []
        try block { parser throws(ParseStop) in items.append(try parser.item()) }
        return items
    }

    private mutating func item() throws(ParseStop) -> ItemSyntax {
        if at("check"), peek(1).text != ":" { return .check(try check()) }
        let name = try name("a field, like name : u8")
        if !accept(":") {
            let stop = expected("':'")
            // A type on the same line: only the colon is missing.
            guard current.kind == .name, current.linesBefore == 0 else { throw stop }
        }
        var field = FieldSyntax(name: name, type: try type())
        while true {
            if accept("=") {
                field.value = try expression()
            } else if accept("when") {
                field.condition = try expression()
            } else if at("nonce"), peek(1).text != ":" {
                advance()
                field.isNonce = true
            } else if at("secret"), peek(1).text != ":" {
                advance()
                field.isSecret = true
            } else if let label = optionalString() {
                field.label = label
            } else {
                return .field(field)
            }
        }
    }

    mutating func type() throws(ParseStop) -> TypeSyntax {
        depth += 1
        defer { depth -= 1 }
        guard depth < 64 else { throw expected("less nesting") }
        let place = current.place
        if at("{") { return .inline(try items(), place) }
        let name = try name("a type, like u8, bytes(n), rest or the name of a message")
        switch name.text {
        case "u8": return .number(octets: 1, littleEndian: false, place)
        case "u16": return .number(octets: 2, littleEndian: false, place)
        case "u24": return .number(octets: 3, littleEndian: false, place)
        case "u32": return .number(octets: 4, littleEndian: false, place)
        case "u64": return .number(octets: 8, littleEndian: false, place)
        case "u16le": return .number(octets: 2, littleEndian: true, place)
        case "u24le": return .number(octets: 3, littleEndian: true, place)
        case "u32le": return .number(octets: 4, littleEndian: true, place)
        case "uint": return .filling(place)
        case "bits":
            try require("(")
            let width = Int(clamping: min(64, try number("a number of bits").value))
            try require(")")
            return .bits(width: width, try bits(), place)
        case "rest": return .octets(.octets, count: nil, inner: try inner(), place)
        case "bytes":
            try require("(", "'(' and a number of bytes; 'rest' takes all that is left")
            let count = try expression()
            try require(")")
            return .octets(.octets, count: count, inner: try inner(), place)
        case "ascii", "bcd":
            var count: Expression?
            if accept("(") {
                count = try expression()
                try require(")")
            }
            return .octets(name.text == "ascii" ? .text : .decimal, count: count, inner: nil, place)
        case "repeat":
            var count: Expression?
            if accept("(") {
                count = try expression()
                try require(")")
            }
            return .list(count: count, try type(), place)
        default:
            if at("."), peek(1).kind == .name {
                advance()
                return .named(grammar: name, try self.name("the name of a type"))
            }
            return .named(grammar: nil, name)
        }
    }

    private mutating func inner() throws(ParseStop) -> TypeSyntax? {
        guard at("as"), peek(1).text != ":" else { return nil }
        advance()
        return try type()
    }

    private mutating func bits() throws(ParseStop) -> [BitSyntax] {
        var list: [BitSyntax] = []
        try block { parser throws(ParseStop) in
            let name = try parser.name("a bit field, like sm : 2")
            try parser.require(":")
            let width = try parser.number("a number of bits").value
            var bit = BitSyntax(name: name, width: Int(clamping: min(64, width)))
            if parser.current.kind == .name, parser.peek(1).text != ":" { bit.type = try parser.name("an enumeration") }
            if parser.accept("=") { bit.value = try parser.expression() }
            bit.label = parser.optionalString()
            list.append(bit)
        }
        return list
    }

    mutating func tags() throws(ParseStop) -> TagsSyntax {
        var result = TagsSyntax(name: try name("the dictionary's name"))
        try require(":")
        let dialect = try name("ber, simple or compact")
        switch dialect.text {
        case "ber": result.dialect = .ber
        case "simple": result.dialect = .simple
        case "compact": result.dialect = .compact
        default: diagnostics.add(.type, dialect.place, "expected ber, simple or compact, found '\(dialect.text)'")
        }
        result.entries = try tagEntries()
        return result
    }

    private mutating func tagEntries() throws(ParseStop) -> [TagSyntax] {
        var list: [TagSyntax] = []
        try block { parser throws(ParseStop) in
            let token = parser.current
            guard token.kind == .number || token.kind == .name, token.text.count <= 8, let tag = UInt32(token.text, radix: 16)
            else {
                throw parser.expected("a tag in hexadecimal, like 6F or 9F38")
            }
            parser.advance()
            var entry = TagSyntax(tag: tag, place: token.place, name: try parser.name("a name for the tag"))
            entry.label = parser.optionalString()
            if parser.at("{") {
                entry.type = .tags(try parser.tagEntries(), token.place)
            } else if parser.accept(":") {
                entry.type = try parser.type()
            }
            while true {
                if parser.accept("nonce") {
                    entry.isNonce = true
                } else if parser.accept("secret") {
                    entry.isSecret = true
                } else if let label = parser.optionalString() {
                    entry.label = label
                } else {
                    break
                }
            }
            list.append(entry)
        }
        return list
    }

    mutating func choice() throws(ParseStop) -> ChoiceSyntax {
        let name = try name("the choice's name")
        var list: [ChoiceSyntax.Alternative] = []
        let close = current.place
        try block { parser throws(ParseStop) in
            var condition: Expression?
            if parser.accept("when") {
                condition = try parser.expression()
            } else {
                try parser.require("otherwise", "'when' or 'otherwise'")
            }
            try parser.require(":")
            let name = try parser.name("a name for the alternative")
            let type: TypeSyntax
            if parser.accept(":") {
                type = try parser.type()
            } else {
                let place = parser.current.place
                type = .inline(try parser.items(), place)
            }
            var remark: (severity: Severity, text: Name)?
            if let severity = parser.severity() { remark = (severity, try parser.string("a text in quotes")) }
            list.append(.init(condition: condition, name: name, type: type, remark: remark))
        }
        if !list.contains(where: { $0.condition == nil }) {
            diagnostics.add(
                .noOtherwise, name.place, "choose \(name.text) has no 'otherwise': every input must decode to something",
                see: ("its alternatives begin here", close))
        }
        return ChoiceSyntax(name: name, alternatives: list)
    }

    mutating func severity() -> Severity? {
        guard peek(1).kind == .string else { return nil }
        if accept("error") { return .error }
        if accept("warn") { return .warn }
        if accept("note") { return .note }
        return nil
    }
}
