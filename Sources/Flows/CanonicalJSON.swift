// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets

/// JSON of which equal values have equal text: sorted keys, no spaces, octets in upper-case hexadecimal.
package enum CanonicalJSON {
    package static func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dataEncodingStrategy = .custom { data, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(Hex.encode(data))
        }
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    static func decode<Value: Decodable>(_ type: Value.Type, from text: String, of flow: String) throws(FlowArgumentError)
        -> Value
    {
        let decoder = JSONDecoder()
        decoder.dataDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            do { return Data(try Hex.decode(try container.decode(String.self))) } catch let error as HexError {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: error.description)
            }
        }
        do {
            return try decoder.decode(type, from: Data(text.utf8))
        } catch {
            throw FlowArgumentError(flow: flow, detail: describe(error))
        }
    }

    /// The top-level keys of an object; empty when `text` is none.
    static func keys(of text: String) -> Set<String> {
        struct Anything: Decodable {
            init(from decoder: any Decoder) throws {}
        }
        return Set(((try? JSONDecoder().decode([String: Anything].self, from: Data(text.utf8))) ?? [:]).keys)
    }

    private static func describe(_ error: any Error) -> String {
        func path(_ context: DecodingError.Context) -> String {
            let path = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
            return path.isEmpty ? "the arguments" : path
        }
        return switch error as? DecodingError {
        case .keyNotFound(let key, _): "\(key.stringValue) is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            "\(path(context)): \(context.debugDescription)"
        default: "\(error)"
        }
    }
}

/// Arguments that a flow cannot take.
public struct FlowArgumentError: Error, Sendable, Equatable, CustomStringConvertible {
    public let flow: String
    public let detail: String

    public static func == (left: Self, right: Self) -> Bool { left.flow == right.flow }

    public var description: String { "\(flow): \(detail)" }
}
