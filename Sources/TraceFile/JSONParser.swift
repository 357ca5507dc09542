// SPDX-License-Identifier: MIT

public import Octets

/// What is wrong with JSON text, and where. Equality is on the code.
public struct JSONError: CodedError {
    public enum Code: Sendable {
        case unexpectedEnd
        case unexpectedOctet
        case badEscape
        case badNumber
        case notUTF8
        /// Arrays and objects inside each other past the limit.
        case tooDeep
        /// More octets or values than the limit.
        case tooLarge
        /// Something follows the value.
        case trailing
    }

    public let code: Code
    /// Octets from the start of the text.
    public let offset: Int

    public init(_ code: Code, offset: Int) {
        self.code = code
        self.offset = offset
    }

    public var description: String {
        let what =
            switch code {
            case .unexpectedEnd: "the JSON ends early"
            case .unexpectedOctet: "no JSON"
            case .badEscape: "a wrong escape"
            case .badNumber: "no number"
            case .notUTF8: "no UTF-8"
            case .tooDeep: "values too deep inside each other"
            case .tooLarge: "too much JSON"
            case .trailing: "something follows the JSON"
            }
        return "\(what), at byte \(offset)"
    }
}

extension JSONValue {
    /// Parses one JSON value with nothing but white space around it. Of two members with one name the last counts.
    ///
    /// - Parameters:
    ///   - depth: how deep arrays and objects may stand inside each other.
    ///   - values: how many values there may be in all.
    public static func parse(_ octets: [UInt8], depth: Int = 64, values: Int = 1 << 20) throws(JSONError) -> JSONValue {
        try parse(octets[...], depth: depth, values: values)
    }

    public static func parse(_ octets: ArraySlice<UInt8>, depth: Int = 64, values: Int = 1 << 20) throws(JSONError) -> JSONValue {
        var parser = JSONParser(octets: octets, depth: depth, values: values)
        let value = try parser.value()
        try parser.finish()
        return value
    }

    public static func parse(_ text: String, depth: Int = 64, values: Int = 1 << 20) throws(JSONError) -> JSONValue {
        try parse([UInt8](text.utf8), depth: depth, values: values)
    }
}

private struct JSONParser {
    private let octets: ArraySlice<UInt8>
    private var index: Int
    private var depth: Int
    private var values: Int

    init(octets: ArraySlice<UInt8>, depth: Int, values: Int) {
        self.octets = octets
        index = octets.startIndex
        self.depth = min(depth, 512)
        self.values = values
    }

    mutating func finish() throws(JSONError) {
        skipBlanks()
        if index < octets.endIndex { throw error(.trailing) }
    }

    mutating func value() throws(JSONError) -> JSONValue {
        guard values > 0 else { throw error(.tooLarge) }
        values -= 1
        skipBlanks()
        switch peek {
        case 0x7B: return try object()
        case 0x5B: return try array()
        case 0x22: return .string(try string())
        case 0x74: return try word("true", .bool(true))
        case 0x66: return try word("false", .bool(false))
        case 0x6E: return try word("null", .null)
        case .some(0x30...0x39), 0x2D: return try number()
        case nil: throw error(.unexpectedEnd)
        default: throw error(.unexpectedOctet)
        }
    }

    private var peek: UInt8? { index < octets.endIndex ? octets[index] : nil }

    private func error(_ code: JSONError.Code) -> JSONError { JSONError(code, offset: index - octets.startIndex) }

    private mutating func skipBlanks() {
        while let octet = peek, octet == 0x20 || octet == 0x0A || octet == 0x0D || octet == 0x09 { index += 1 }
    }

    private mutating func expect(_ octet: UInt8) throws(JSONError) {
        guard let found = peek else { throw error(.unexpectedEnd) }
        guard found == octet else { throw error(.unexpectedOctet) }
        index += 1
    }

    private mutating func enter() throws(JSONError) {
        guard depth > 0 else { throw error(.tooDeep) }
        depth -= 1
        index += 1
        skipBlanks()
    }

    private mutating func object() throws(JSONError) -> JSONValue {
        try enter()
        defer { depth += 1 }
        var members: [String: JSONValue] = [:]
        if peek == 0x7D {
            index += 1
            return .object(members)
        }
        while true {
            skipBlanks()
            guard peek == 0x22 else { throw error(peek == nil ? .unexpectedEnd : .unexpectedOctet) }
            let key = try string()
            skipBlanks()
            try expect(0x3A)
            members[key] = try value()
            skipBlanks()
            if peek == 0x2C {
                index += 1
            } else {
                try expect(0x7D)
                return .object(members)
            }
        }
    }

    private mutating func array() throws(JSONError) -> JSONValue {
        try enter()
        defer { depth += 1 }
        var elements: [JSONValue] = []
        if peek == 0x5D {
            index += 1
            return .array(elements)
        }
        while true {
            elements.append(try value())
            skipBlanks()
            if peek == 0x2C {
                index += 1
            } else {
                try expect(0x5D)
                return .array(elements)
            }
        }
    }

    private mutating func word(_ text: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        for octet in "\(text)".utf8 { try expect(octet) }
        return value
    }

    private mutating func number() throws(JSONError) -> JSONValue {
        let start = index
        var isInteger = true
        if peek == 0x2D { index += 1 }
        if peek == 0x30 { index += 1 } else { try digits() }
        if peek == 0x2E {
            isInteger = false
            index += 1
            try digits()
        }
        if peek == 0x65 || peek == 0x45 {
            isInteger = false
            index += 1
            if peek == 0x2B || peek == 0x2D { index += 1 }
            try digits()
        }
        // A number longer than this is not one that anybody wrote; it would only cost time.
        guard index - start <= 400 else { throw error(.badNumber) }
        let text = String(decoding: octets[start..<index], as: UTF8.self)
        if isInteger, let number = Int64(text) { return .integer(number) }
        guard let number = Double(text), number.isFinite else { throw error(.badNumber) }
        return .number(number)
    }

    private mutating func digits() throws(JSONError) {
        guard let first = peek, (0x30...0x39).contains(first) else { throw error(.badNumber) }
        while let octet = peek, (0x30...0x39).contains(octet) { index += 1 }
    }

    private mutating func string() throws(JSONError) -> String {
        index += 1
        var units: [UInt8] = []
        let start = index
        while true {
            guard let octet = peek else { throw error(.unexpectedEnd) }
            if octet == 0x22 { break }
            if octet < 0x20 { throw error(.unexpectedOctet) }
            index += 1
            if octet == 0x5C { try escape(&units) } else { units.append(octet) }
        }
        guard let text = String(validating: units, as: UTF8.self) else {
            throw JSONError(.notUTF8, offset: start - octets.startIndex)
        }
        index += 1
        return text
    }

    private mutating func escape(_ units: inout [UInt8]) throws(JSONError) {
        guard let octet = peek else { throw error(.unexpectedEnd) }
        index += 1
        switch octet {
        case 0x22, 0x5C, 0x2F: units.append(octet)
        case 0x62: units.append(0x08)
        case 0x66: units.append(0x0C)
        case 0x6E: units.append(0x0A)
        case 0x72: units.append(0x0D)
        case 0x74: units.append(0x09)
        case 0x75: units += try scalar()
        default: throw error(.badEscape)
        }
    }

    /// The UTF-8 octets of `\uXXXX`, or of two of them that are a surrogate pair.
    private mutating func scalar() throws(JSONError) -> [UInt8] {
        var value = try fourDigits()
        if (0xD800..<0xDC00).contains(value) {
            try expect(0x5C)
            try expect(0x75)
            let low = try fourDigits()
            guard (0xDC00..<0xE000).contains(low) else { throw error(.badEscape) }
            value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(value) else { throw error(.badEscape) }
        return [UInt8](String(Character(scalar)).utf8)
    }

    private mutating func fourDigits() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let octet = peek else { throw error(.unexpectedEnd) }
            let digit: UInt8
            switch octet {
            case 0x30...0x39: digit = octet - 0x30
            case 0x41...0x46: digit = octet - 0x37
            case 0x61...0x66: digit = octet - 0x57
            default: throw error(.badEscape)
            }
            value = value << 4 | UInt32(digit)
            index += 1
        }
        return value
    }
}
