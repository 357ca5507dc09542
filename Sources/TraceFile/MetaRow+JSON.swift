// SPDX-License-Identifier: MIT

import Octets

extension MetaRow {
    /// Reads the body of a `json` row. Nil when it is no JSON object with a text under `td`.
    public init?(body: [UInt8]) { self.init(body: body[...]) }

    public init?(body: ArraySlice<UInt8>) {
        guard case .object(let members)? = try? JSONValue.parse(body), case .string(let td)? = members["td"] else { return nil }
        var fields = Fields(rest: members)
        fields.rest["td"] = nil
        self = Self.known(td, &fields) ?? .unknown(members)
    }

    /// The row's text: `td` first, then the keys in the order of the format's page, then others sorted.
    public var text: String {
        let (td, members, extra) = parts
        var writer = JSONWriter()
        writer.begin()
        writer.member("td", .string(td))
        // An optional member of a type that is not its own was kept among the others, and goes back to its place.
        for (key, value) in members { if let value = extra[key] ?? value { writer.member(key, value) } }
        let known = Set(members.lazy.map(\.0))
        for (key, value) in JSONWriter.sorted(extra) where key != "td" && !known.contains(key) { writer.member(key, value) }
        writer.end()
        return String(decoding: writer.octets, as: UTF8.self)
    }

    /// The octets of ``text``: the row's body.
    public var body: [UInt8] { [UInt8](text.utf8) }

    /// Takes known members out of an object, so that what is left is what was not known.
    private struct Fields {
        var rest: [String: JSONValue]

        mutating func text(_ key: String) -> String? {
            guard case .string(let text)? = rest[key] else { return nil }
            rest[key] = nil
            return text
        }

        mutating func integer(_ key: String) -> Int? {
            guard case .integer(let number)? = rest[key], let value = Int(exactly: number) else { return nil }
            rest[key] = nil
            return value
        }

        mutating func octets(_ key: String) -> [UInt8]? {
            guard case .string(let text)? = rest[key], let octets = try? Hex.decode(text) else { return nil }
            rest[key] = nil
            return octets
        }

        mutating func null(_ key: String) {
            if rest[key] == .null { rest[key] = nil }
        }

        mutating func sealable<Value>(_ key: String, _ read: (inout Fields) -> Value?) -> Sealable<Value>? {
            if let name = rest[key]?.sealedName {
                rest[key] = nil
                return .sealed(name)
            }
            return read(&self).map { .plain($0) }
        }
    }

    private static func known(_ td: String, _ fields: inout Fields) -> MetaRow? {
        switch td {
        case "transport": transport(&fields)
        case "call": call(&fields)
        case "progress": progress(&fields)
        case "entropy": entropy(&fields)
        case "clock": clock(&fields)
        case "state": state(&fields)
        case "event": event(&fields)
        case "error": failure(&fields)
        case "return": result(&fields)
        case "reader": reader(&fields)
        case "mark": mark(&fields)
        default: nil
        }
    }

    private static func transport(_ fields: inout Fields) -> MetaRow? {
        guard let id = fields.integer("id"), let kind = fields.text("kind").flatMap(Transport.Kind.init) else { return nil }
        var row = Transport(id: id, kind: kind)
        row.identifier = fields.octets("identifier")
        row.initialAID = fields.octets("initialAID")
        row.systemCode = fields.octets("systemCode")
        row.icManufacturerCode = fields.integer("icManufacturerCode")
        row.atr = fields.octets("atr")
        row.extra = fields.rest
        return .transport(row)
    }

    private static func call(_ fields: inout Fields) -> MetaRow? {
        guard let id = fields.integer("id"), let function = fields.text("function") else { return nil }
        var row = Call(id: id, parent: fields.integer("parent"), flow: fields.text("flow"), function: function)
        fields.null("parent")
        fields.null("flow")
        if case .object(let args)? = fields.rest["args"] {
            row.args = args
            fields.rest["args"] = nil
        }
        row.transport = fields.integer("transport")
        row.extra = fields.rest
        return .call(row)
    }

    private static func progress(_ fields: inout Fields) -> MetaRow? {
        guard let call = fields.integer("call"), let text = fields.sealable("text", { $0.text("text") }) else { return nil }
        var row = Progress(call: call, text: text)
        row.extra = fields.rest
        return .progress(row)
    }

    private static func entropy(_ fields: inout Fields) -> MetaRow? {
        guard let call = fields.integer("call"), let label = fields.text("label"), let index = fields.integer("index"),
            let length = fields.integer("length")
        else { return nil }
        var row = Entropy(call: call, label: label, index: index, length: length)
        row.extra = fields.rest
        return .entropy(row)
    }

    private static func clock(_ fields: inout Fields) -> MetaRow? {
        guard let call = fields.integer("call"), let kind = fields.text("kind").flatMap(Clock.Kind.init),
            let nanoseconds = fields.text("ns").flatMap({ Int64($0) })
        else { return nil }
        var row = Clock(call: call, kind: kind, nanoseconds: nanoseconds)
        row.extra = fields.rest
        return .clock(row)
    }

    private static func state(_ fields: inout Fields) -> MetaRow? {
        guard let machine = fields.text("machine"), let from = fields.text("from"), let to = fields.text("to") else { return nil }
        var row = State(call: fields.integer("call"), machine: machine, from: from, to: to)
        fields.null("call")
        row.extra = fields.rest
        return .state(row)
    }

    private static func event(_ fields: inout Fields) -> MetaRow? {
        guard let name = fields.text("name") else { return nil }
        var row = Event(call: fields.integer("call"), name: name, detail: fields.rest.removeValue(forKey: "detail"))
        fields.null("call")
        row.extra = fields.rest
        return .event(row)
    }

    private static func failure(_ fields: inout Fields) -> MetaRow? {
        guard let domain = fields.text("domain"), let name = fields.text("case") else { return nil }
        var row = Failure(after: fields.integer("after").flatMap { UInt64(exactly: $0) }, domain: domain, case: name)
        fields.null("after")
        row.code = fields.text("code")
        row.extra = fields.rest
        return .error(row)
    }

    private static func result(_ fields: inout Fields) -> MetaRow? {
        guard let call = fields.integer("call"), case .bool(let ok)? = fields.rest.removeValue(forKey: "ok") else { return nil }
        var row = Return(call: call, ok: ok, domain: fields.text("domain"), case: fields.text("case"))
        row.extra = fields.rest
        return .return(row)
    }

    private static func reader(_ fields: inout Fields) -> MetaRow? {
        guard let name = fields.text("name") else { return nil }
        var row = Reader(name: name, code: fields.text("code"), control: fields.integer("control"))
        row.input = fields.sealable("in") { $0.octets("in") }
        row.output = fields.sealable("out") { $0.octets("out") }
        row.atr = fields.octets("atr")
        row.extra = fields.rest
        return .reader(row)
    }

    private static func mark(_ fields: inout Fields) -> MetaRow? {
        guard let text = fields.text("text") else { return nil }
        var row = Mark(text: text)
        row.extra = fields.rest
        return .mark(row)
    }
}

extension MetaRow {
    /// Members in the order of the format's page; nil leaves one out.
    private typealias Members = [(String, JSONValue?)]

    private var parts: (td: String, members: Members, extra: [String: JSONValue]) {
        switch self {
        case .transport(let row):
            (
                "transport",
                [
                    ("id", .integer(Int64(row.id))), ("kind", .string(row.kind.rawValue)),
                    ("identifier", row.identifier.map(hex)),
                    ("initialAID", row.initialAID.map(hex)), ("systemCode", row.systemCode.map(hex)),
                    ("icManufacturerCode", row.icManufacturerCode.map(number)), ("atr", row.atr.map(hex)),
                ], row.extra
            )
        case .call(let row):
            (
                "call",
                [
                    ("id", number(row.id)), ("parent", row.parent.map(number) ?? .null), ("flow", row.flow.map(string) ?? .null),
                    ("function", string(row.function)), ("args", .object(row.args)), ("transport", row.transport.map(number)),
                ], row.extra
            )
        case .progress(let row): ("progress", [("call", number(row.call)), ("text", sealable(row.text, string))], row.extra)
        case .entropy(let row):
            (
                "entropy",
                [
                    ("call", number(row.call)), ("label", string(row.label)), ("index", number(row.index)),
                    ("length", number(row.length)),
                ], row.extra
            )
        case .clock(let row):
            (
                "clock", [("call", number(row.call)), ("kind", string(row.kind.rawValue)), ("ns", string("\(row.nanoseconds)"))],
                row.extra
            )
        case .state(let row):
            (
                "state",
                [
                    ("call", row.call.map(number)), ("machine", string(row.machine)), ("from", string(row.from)),
                    ("to", string(row.to)),
                ], row.extra
            )
        case .event(let row):
            ("event", [("call", row.call.map(number)), ("name", string(row.name)), ("detail", row.detail)], row.extra)
        case .error(let row):
            (
                "error",
                [
                    ("after", row.after.map { .integer(Int64(clamping: $0)) }), ("domain", string(row.domain)),
                    ("case", string(row.case)),
                    ("code", row.code.map(string)),
                ], row.extra
            )
        case .return(let row):
            (
                "return",
                [
                    ("call", number(row.call)), ("ok", .bool(row.ok)), ("domain", row.domain.map(string)),
                    ("case", row.case.map(string)),
                ], row.extra
            )
        case .reader(let row):
            (
                "reader",
                [
                    ("name", string(row.name)), ("code", row.code.map(string)), ("control", row.control.map(number)),
                    ("in", row.input.map { sealable($0, hex) }), ("out", row.output.map { sealable($0, hex) }),
                    ("atr", row.atr.map(hex)),
                ], row.extra
            )
        case .mark(let row): ("mark", [("text", string(row.text))], row.extra)
        case .unknown(let members): (members["td"]?.stringValue ?? "", [], members)
        }
    }

    private func number(_ value: Int) -> JSONValue { .integer(Int64(value)) }

    private func string(_ value: String) -> JSONValue { .string(value) }

    private func hex(_ octets: [UInt8]) -> JSONValue { .string(Hex.encode(octets)) }

    private func sealable<Value>(_ value: Sealable<Value>, _ plain: (Value) -> JSONValue) -> JSONValue {
        switch value {
        case .plain(let value): plain(value)
        case .sealed(let name): .sealed(name)
        }
    }
}
