// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

extension Parser {
    mutating func exchange() throws(ParseStop) -> ExchangeSyntax {
        var result = ExchangeSyntax(name: try name("the exchange's name"))
        result.label = optionalString()
        result.detail = optionalString()
        try block { parser throws(ParseStop) in
            if parser.accept("request") {
                result.request = try parser.qualified("the name of a message")
                if parser.accept("when") { result.condition = try parser.expression() }
            } else if parser.accept("response") {
                result.response = try parser.qualified("the name of a message")
            } else {
                try parser.require("refine", "'request', 'response' or 'refine'")
                let path = try parser.expression()
                try parser.require(":")
                var refinement = RefineSyntax(path: path, type: try parser.type())
                if parser.accept("when") { refinement.condition = try parser.expression() }
                result.refinements.append(refinement)
            }
        }
        return result
    }

    mutating func gather() throws(ParseStop) -> GatherSyntax {
        var result = GatherSyntax(name: try name("the gather's name"))
        try block { parser throws(ParseStop) in
            if parser.at("request") || parser.at("response") {
                result.isRequest = parser.advance().text == "request"
                result.type = try parser.qualified("the name of a message")
                if parser.accept("when") { result.condition = try parser.expression() }
            } else if parser.accept("decode") {
                try parser.require("joined")
                try parser.require("as")
                result.decode = try parser.qualified("the name of a message")
            } else if parser.accept("protected") {
                result.isProtected = true
            } else if parser.accept("keep") {
                result.keep = try parser.expression()
            } else if parser.accept("part") {
                result.part = try parser.expression()
            } else if parser.accept("more") {
                try parser.require("when")
                result.more = try parser.expression()
            } else if parser.accept("next") {
                try parser.require("when")
                result.next = try parser.expression()
            } else {
                guard parser.at("yield") else {
                    throw parser.expected(
                        "'request', 'response', 'protected', 'keep', 'part', 'more', 'next', 'yield' or 'decode'")
                }
                result.result = try parser.yield()
            }
        }
        return result
    }

    mutating func parameters() throws(ParseStop) -> [ParameterSyntax] {
        var list: [ParameterSyntax] = []
        try require("(")
        while !at(")") {
            let isGiven = at("given") && peek(1).kind == .name
            if isGiven { advance() }
            var name = try name("a parameter")
            if accept(".") {
                let field = try self.name("a parameter")
                name.text += "." + field.text
                name.place.end = field.place.end
            }
            try require(":")
            list.append(ParameterSyntax(name: name, type: try self.name("key, bytes, counter, u8 or u32"), isGiven: isGiven))
            if !accept(",") { break }
        }
        try require(")", "',' or ')'")
        return list
    }

    mutating func layer(_ list: inout [Declaration]) throws(ParseStop) -> LayerSyntax {
        var result = LayerSyntax(name: try name("the layer's name"))
        result.parameters = try parameters()
        result.isReadOnly = accept("readonly")
        var hoisted: [Declaration] = []
        try block { parser throws(ParseStop) in
            let place = parser.current.place
            guard parser.at("request") || parser.at("response") else {
                guard Self.keywords.contains(parser.current.text) else {
                    throw parser.expected("'request', 'response' or a declaration")
                }
                try parser.declaration(&hoisted)
                return
            }
            let isRequest = parser.advance().text == "request"
            let type = try parser.qualified("the name of a message")
            let condition = parser.accept("when") ? try parser.expression() : nil
            result.clauses.append(
                .init(isRequest: isRequest, type: type, condition: condition, statements: try parser.statements(), place: place))
        }
        list += hoisted
        return result
    }

    mutating func transform() throws(ParseStop) -> TransformSyntax {
        let name = try name("the transform's name")
        let parameters = try parameters()
        try require("->")
        var result = TransformSyntax(name: name, parameters: parameters, result: try self.name("key or bytes"))
        if accept("inverse") { result.inverse = try self.name("a transform") }
        return result
    }

    mutating func session() throws(ParseStop) -> SessionSyntax {
        var result = SessionSyntax(name: try name("the session's name"))
        try block { parser throws(ParseStop) in
            if parser.at("given") || parser.at("var") {
                let isGiven = parser.advance().text == "given"
                repeat {
                    let name = try parser.name("a variable")
                    try parser.require(":")
                    let type = try parser.name("key, bytes, counter, int or id")
                    var size: Int?
                    if parser.accept("(") {
                        size = Int(clamping: min(65_536, try parser.number("a number of bytes").value))
                        try parser.require(")")
                    }
                    result.variables.append(VariableSyntax(name: name, type: type, size: size, isGiven: isGiven))
                } while parser.accept(",")
            } else if parser.accept("event") {
                let isOutside = parser.at("outside") && parser.peek(1).kind == .name
                if isOutside { parser.advance() }
                repeat {
                    let name = try parser.name("an event")
                    result.events.append(name)
                    if isOutside { result.outside.insert(name.text) }
                    if parser.at("(") { result.carried += try parser.parameters() }
                } while parser.accept(",")
            } else if parser.accept("state") {
                let name = try parser.name("a state")
                let isInitial = parser.accept("initial")
                _ = parser.accept("final")
                result.states.append(.init(name: name, isInitial: isInitial))
                if parser.at("{") { result.blocks.append(.init(states: [name], transitions: try parser.transitions())) }
            } else if parser.accept("in") {
                var states: [Name]?
                var except: [Name] = []
                if parser.accept("any") {
                    if parser.accept("but") { except = try parser.names("a state") }
                } else {
                    states = try parser.names("a state")
                }
                result.blocks.append(.init(states: states, except: except, transitions: try parser.transitions()))
            } else if parser.accept("otherwise") {
                try parser.require("illegal")
                result.illegal = try parser.string("a text in quotes")
            } else {
                try parser.require("observe", "'given', 'var', 'event', 'state', 'in', 'otherwise' or 'observe'")
                try parser.require("state")
                try parser.require("->")
                try parser.require("resync")
                result.resyncs = true
            }
        }
        return result
    }

    private mutating func names(_ what: String) throws(ParseStop) -> [Name] {
        var list: [Name] = []
        repeat { list.append(try name(what)) } while accept(",")
        return list
    }

    private mutating func transitions() throws(ParseStop) -> [TransitionSyntax] {
        var list: [TransitionSyntax] = []
        try block { parser throws(ParseStop) in
            let place = parser.current.place
            try parser.require("on")
            let events = try parser.names("an exchange or an event")
            var outcome = SessionInfo.Outcome.any
            if parser.accept("ok") {
                outcome = .ok
            } else if parser.accept("error") {
                outcome = .error
                if parser.current.kind == .name, !parser.at("when") { outcome = .errorNamed(try parser.name("an error").text) }
            }
            let condition = parser.accept("when") ? try parser.expression() : nil
            try parser.require("->")
            var result = TransitionSyntax(
                events: events, outcome: outcome, condition: condition, target: try parser.name("a state, or 'stay'"),
                place: place)
            if parser.accept("contested") { result.contested = try parser.string("a text in quotes") }
            if parser.at("{") { result.statements = try parser.statements() }
            list.append(result)
        }
        return list
    }

    mutating func statements() throws(ParseStop) -> [Statement] {
        var list: [Statement] = []
        try block { parser throws(ParseStop) in list.append(try parser.statement()) }
        return list
    }

    private mutating func statement() throws(ParseStop) -> Statement {
        let place = current.place
        if at("check") { return .check(try check()) }
        if at("yield") { return .yield(try yield()) }
        if let severity = severity() { return .note(severity, try string("a text in quotes")) }
        if peek(1).kind == .name || peek(1).text == "}" || peek(1).linesBefore > 0 {
            if accept("let") {
                let name = try name("a name")
                try require("=")
                return .bind(name, try expression())
            }
            if accept("open") {
                let source = try expression()
                let transform = accept("with") ? try expression() : nil
                try require("as")
                let name = try name("a name for what is opened")
                try require(":")
                return .open(source, transform: transform, name, try type())
            }
            if accept("decode") {
                let command = try expression()
                try require(",")
                let response = try expression()
                try require("as")
                return .decode(command, response, grammar: try name("the name of a grammar"), place)
            }
            if accept("start") {
                let target = try qualified("the name of a layer")
                var arguments: [Expression] = []
                try require("(")
                while !at(")") {
                    arguments.append(try expression())
                    if !accept(",") { break }
                }
                try require(")", "',' or ')'")
                return .start(grammar: target.grammar, target.name, arguments, place)
            }
            if accept("stop") {
                return .stop(current.kind == .name && current.linesBefore == 0 ? try name("a layer") : nil, place)
            }
        }
        let name = try name("a statement (let, open, check, start, stop, yield, or name = value)")
        if accept("+=") { return .bump(name, Int(clamping: min(1 << 30, try number("a number").value))) }
        if accept("-=") { return .bump(name, -Int(clamping: min(1 << 30, try number("a number").value))) }
        try require("=", "'=', '+=' or '-='")
        return .assign(name, try expression())
    }

    mutating func yield() throws(ParseStop) -> YieldSyntax {
        let place = advance().place
        var result = YieldSyntax(type: try qualified("the name of a message"), place: place)
        try block { parser throws(ParseStop) in
            var path = Expression.name(try parser.name("a field"))
            while parser.accept(".") { path = .member(path, try parser.name("a field")) }
            try parser.require("=")
            var assign = YieldSyntax.Assign(path: path, value: try parser.expression())
            if parser.accept("when") { assign.condition = try parser.expression() }
            result.assigns.append(assign)
        }
        return result
    }

    mutating func example() throws(ParseStop) -> ExampleSyntax {
        let place = current.place
        let subject = try qualified("the name of an exchange or a message")
        var result = ExampleSyntax(subject: subject.name, grammar: subject.grammar, place: place)
        result.title = optionalString()
        try block { parser throws(ParseStop) in
            if parser.accept("given") {
                let name = try parser.path()
                try parser.require("=")
                result.givens.append(.init(name: name, octets: try parser.hexWords()))
            } else if parser.accept("expect") {
                let path = try parser.path()
                if parser.accept("==") {
                    result.expectations.append(.field(path, try parser.hexWords()))
                } else {
                    let count =
                        parser.current.kind == .number && parser.current.linesBefore == 0
                        ? try parser.number("a number").value : nil
                    result.expectations.append(.code(path, count.map { Int(clamping: $0) }))
                }
            } else {
                let isRequest = parser.accept(">")
                if !isRequest { try parser.require("<", "'>' or '<' and bytes in hexadecimal, 'given' or 'expect'") }
                result.frames.append(.init(isRequest: isRequest, octets: try parser.hexWords()))
            }
        }
        return result
    }

    private mutating func path() throws(ParseStop) -> Name {
        var result = try name("a name")
        while accept(".") {
            let next = try name("a name")
            result.text += "." + next.text
            result.place.end = next.place.end
        }
        return result
    }

    /// Octets as they stand in a dump: words of hexadecimal digits.
    private mutating func hexWords() throws(ParseStop) -> [UInt8] {
        var octets: [UInt8] = []
        while current.kind == .number || current.kind == .name, !at("expect"), !at("given") {
            do { octets += try Hex.decode(current.text) } catch { throw expected("hexadecimal digits in pairs") }
            advance()
        }
        return octets
    }
}
