// SPDX-License-Identifier: MIT

/// A JSON value (RFC 8259). Equality of objects does not look at the order of keys.
public enum JSONValue: Sendable, Equatable, Hashable {
    case null
    case bool(Bool)
    /// A number without fraction and exponent that fits 64 bits.
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// The canonical text: no blanks, keys sorted by their UTF-8 octets, the shortest text of a number that reads back
    /// as the same, only the escapes that JSON demands. A number that is not finite is `null`.
    public var text: String {
        var writer = JSONWriter()
        writer.value(self)
        return String(decoding: writer.octets, as: UTF8.self)
    }

    public subscript(key: String) -> JSONValue? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    public subscript(index: Int) -> JSONValue? {
        if case .array(let elements) = self, elements.indices.contains(index) { elements[index] } else { nil }
    }

    public var isNull: Bool { self == .null }

    public var stringValue: String? { if case .string(let text) = self { text } else { nil } }

    public var integerValue: Int64? { if case .integer(let number) = self { number } else { nil } }

    public var boolValue: Bool? { if case .bool(let flag) = self { flag } else { nil } }

    public var objectValue: [String: JSONValue]? { if case .object(let members) = self { members } else { nil } }

    public var arrayValue: [JSONValue]? { if case .array(let elements) = self { elements } else { nil } }
}

extension JSONValue {
    /// `{"sealed":"call:1:mrzKey"}`: the value stands among the secrets under this name.
    public static func sealed(_ name: String) -> JSONValue { .object(["sealed": .string(name)]) }

    /// `{"omitted":"transport"}`: the argument is no value.
    public static func omitted(_ what: String) -> JSONValue { .object(["omitted": .string(what)]) }

    /// The secret's name in a sealed value; nil for every other value.
    public var sealedName: String? { onlyString("sealed") }

    /// What was left out; nil for every other value.
    public var omittedWhat: String? { onlyString("omitted") }

    private func onlyString(_ key: String) -> String? {
        guard case .object(let members) = self, members.count == 1 else { return nil }
        return members[key]?.stringValue
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByNilLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(nilLiteral: ()) { self = .null }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
}

extension JSONValue: Codable {
    public init(from decoder: any Decoder) throws {
        if let members = try? decoder.container(keyedBy: MemberName.self) {
            var object: [String: JSONValue] = [:]
            for key in members.allKeys { object[key.stringValue] = try members.decode(JSONValue.self, forKey: key) }
            self = .object(object)
            return
        }
        if var elements = try? decoder.unkeyedContainer() {
            var array: [JSONValue] = []
            while !elements.isAtEnd { array.append(try elements.decode(JSONValue.self)) }
            self = .array(array)
            return
        }
        let single = try decoder.singleValueContainer()
        if single.decodeNil() {
            self = .null
        } else if let flag = try? single.decode(Bool.self) {
            self = .bool(flag)
        } else if let number = try? single.decode(Int64.self) {
            self = .integer(number)
        } else if let number = try? single.decode(Double.self) {
            self = .number(number)
        } else {
            self = .string(try single.decode(String.self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .array(let elements):
            var container = encoder.unkeyedContainer()
            for element in elements { try container.encode(element) }
        case .object(let members):
            var container = encoder.container(keyedBy: MemberName.self)
            for (key, value) in members { try container.encode(value, forKey: MemberName(stringValue: key)) }
        case .null: try single(encoder) { try $0.encodeNil() }
        case .bool(let flag): try single(encoder) { try $0.encode(flag) }
        case .integer(let number): try single(encoder) { try $0.encode(number) }
        case .number(let number): try single(encoder) { try $0.encode(number) }
        case .string(let text): try single(encoder) { try $0.encode(text) }
        }
    }

    private func single(_ encoder: any Encoder, _ body: (inout any SingleValueEncodingContainer) throws -> Void) throws {
        var container = encoder.singleValueContainer()
        try body(&container)
    }

    private struct MemberName: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { stringValue = String(intValue) }
    }
}

/// Puts JSON text together.
struct JSONWriter {
    private(set) var octets: [UInt8] = []
    private var isFirst = true

    mutating func value(_ value: JSONValue) {
        switch value {
        case .null: raw("null")
        case .bool(let flag): raw(flag ? "true" : "false")
        case .integer(let number): raw(String(number))
        case .number(let number): raw(number.isFinite ? "\(number)" : "null")
        case .string(let text): string(text)
        case .array(let elements):
            raw("[")
            for (place, element) in elements.enumerated() {
                if place > 0 { raw(",") }
                self.value(element)
            }
            raw("]")
        case .object(let members):
            begin()
            for (key, element) in Self.sorted(members) { member(key, element) }
            end()
        }
    }

    /// Begins an object whose members are given one by one, in the caller's order.
    mutating func begin() {
        raw("{")
        isFirst = true
    }

    mutating func member(_ key: String, _ element: JSONValue) {
        if !isFirst { raw(",") }
        string(key)
        raw(":")
        value(element)
        isFirst = false
    }

    mutating func end() {
        raw("}")
        isFirst = false
    }

    static func sorted(_ members: [String: JSONValue]) -> [(key: String, value: JSONValue)] {
        members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }

    private mutating func raw(_ text: String) { octets.append(contentsOf: text.utf8) }

    private mutating func string(_ text: String) {
        octets.append(0x22)
        for unit in text.utf8 {
            switch unit {
            case 0x22: raw("\\\"")
            case 0x5C: raw("\\\\")
            case 0x08: raw("\\b")
            case 0x0C: raw("\\f")
            case 0x0A: raw("\\n")
            case 0x0D: raw("\\r")
            case 0x09: raw("\\t")
            case 0..<0x20:
                raw("\\u00")
                octets.append(0x30 + (unit >> 4))
                octets.append(unit & 15 < 10 ? 0x30 + (unit & 15) : 0x57 + (unit & 15))
            default: octets.append(unit)
            }
        }
        octets.append(0x22)
    }
}
