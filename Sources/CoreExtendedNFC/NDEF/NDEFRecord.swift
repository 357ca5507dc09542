// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// How the type of an NDEF record is to be read (NDEF 1.0, 3.2.6).
public enum NDEFTypeNameFormat: UInt8, Sendable, Hashable, Codable, CaseIterable {
    case empty = 0
    case wellKnown = 1
    case mimeMedia = 2
    case absoluteURI = 3
    case external = 4
    case unknown = 5
    /// The middle and last chunks of a record.
    case unchanged = 6
    case reserved = 7
}

/// An NDEF record (NDEF 1.0, 2.3.2). Chunks were joined.
public struct NDEFRecord: Sendable, Hashable, Codable {
    public var typeNameFormat: NDEFTypeNameFormat
    public var type: Data
    public var identifier: Data
    public var payload: Data

    /// - Parameters:
    ///   - type: up to 255 octets.
    ///   - identifier: up to 255 octets.
    public init(typeNameFormat: NDEFTypeNameFormat, type: Data = Data(), identifier: Data = Data(), payload: Data = Data()) {
        self.typeNameFormat = typeNameFormat
        self.type = Data(type)
        self.identifier = Data(identifier)
        self.payload = Data(payload)
    }

    /// The record without content.
    public static let empty = NDEFRecord(typeNameFormat: .empty)

    /// A text record in UTF-8 (NFC Forum Text RTD).
    ///
    /// - Parameter languageCode: as RFC 5646 has it; cut at 63 octets.
    public static func text(_ text: String, languageCode: String = "en") -> NDEFRecord {
        let language = Array(languageCode.utf8.prefix(63))
        return NDEFRecord(
            typeNameFormat: .wellKnown, type: Data("T".utf8),
            payload: Data([UInt8(language.count)] + language + Array(text.utf8)))
    }

    /// A URI record with the longest abbreviation that fits (NFC Forum URI RTD).
    public static func uri(_ uri: String) -> NDEFRecord {
        let prefix = NDEFURIPrefix.all.enumerated().filter { $0.offset > 0 && uri.hasPrefix($0.element) }
            .max { $0.element.utf8.count < $1.element.utf8.count }
        let rest = Array(uri.utf8.dropFirst(prefix?.element.utf8.count ?? 0))
        return NDEFRecord(
            typeNameFormat: .wellKnown, type: Data("U".utf8), payload: Data([UInt8(prefix?.offset ?? 0)] + rest))
    }

    /// A smart poster: a URI and, when given, a title (NFC Forum Smart Poster RTD).
    public static func smartPoster(uri: String, title: String? = nil, languageCode: String = "en") -> NDEFRecord {
        var records = [NDEFRecord.uri(uri)]
        if let title { records.append(.text(title, languageCode: languageCode)) }
        return NDEFRecord(
            typeNameFormat: .wellKnown, type: Data("Sp".utf8), payload: NDEFMessage(records: records).data)
    }

    /// A record with a media type of RFC 2046.
    public static func mime(_ type: String, _ data: Data) -> NDEFRecord {
        NDEFRecord(typeNameFormat: .mimeMedia, type: Data(type.utf8.prefix(255)), payload: data)
    }

    /// A record of a type that a domain's owner defined: `example.com:thing`.
    public static func external(_ type: String, _ data: Data) -> NDEFRecord {
        NDEFRecord(typeNameFormat: .external, type: Data(type.utf8.prefix(255)), payload: data)
    }
}

/// What an NDEF record says.
public enum NDEFPayload: Sendable, Hashable {
    case empty
    case text(languageCode: String, text: String)
    case uri(String)
    case mime(type: String, data: Data)
    case smartPoster(uri: String?, title: String?)
    case external(type: String, data: Data)
    case unknown(Data)
}

extension NDEFRecord {
    /// The record's content; `unknown` when it is not what its type says.
    public var parsedPayload: NDEFPayload { parsed(depth: 0) }

    /// A short name of the kind of content.
    public var displayType: String {
        switch parsedPayload {
        case .empty: "Empty"
        case .text: "Text"
        case .uri: "URI"
        case .mime(let type, _): type
        case .smartPoster: "Smart poster"
        case .external(let type, _): type
        case .unknown: "Unknown"
        }
    }

    /// The content in one line.
    public var displayValue: String {
        switch parsedPayload {
        case .empty: ""
        case .text(_, let text): text
        case .uri(let uri): uri
        case .mime(_, let data), .external(_, let data), .unknown(let data): hexText(data)
        case .smartPoster(let uri, let title): [title, uri].compactMap { $0 }.joined(separator: " ")
        }
    }

    private func parsed(depth: Int) -> NDEFPayload {
        let octets = [UInt8](payload)
        let name = String(decoding: type, as: UTF8.self)
        switch typeNameFormat {
        case .empty: return .empty
        case .mimeMedia: return .mime(type: name, data: payload)
        case .external: return .external(type: name, data: payload)
        // The URI is the type, not the payload (NDEF 1.0, 3.2.6).
        case .absoluteURI: return .uri(name)
        case .wellKnown:
            switch name {
            case "T": return Self.text(octets) ?? .unknown(payload)
            case "U":
                guard let code = octets.first else { return .unknown(payload) }
                let prefix = NDEFURIPrefix.all.indices.contains(Int(code)) ? NDEFURIPrefix.all[Int(code)] : ""
                return .uri(prefix + String(decoding: octets.dropFirst(), as: UTF8.self))
            // A poster inside a poster is none.
            case "Sp" where depth == 0: return poster
            default: return .unknown(payload)
            }
        case .unknown, .unchanged, .reserved: return .unknown(payload)
        }
    }

    private var poster: NDEFPayload {
        guard let message = try? NDEFMessage(data: payload) else { return .unknown(payload) }
        var uri: String?
        var title: String?
        for record in message.records {
            switch record.parsed(depth: 1) {
            case .uri(let text) where uri == nil: uri = text
            case .text(_, let text) where title == nil: title = text
            default: break
            }
        }
        return .smartPoster(uri: uri, title: title)
    }

    private static func text(_ octets: [UInt8]) -> NDEFPayload? {
        guard let status = octets.first else { return nil }
        let length = Int(status & 0x3F)
        guard octets.count >= 1 + length else { return nil }
        let language = String(decoding: octets[1..<1 + length], as: UTF8.self)
        let rest = Array(octets[(1 + length)...])
        return .text(
            languageCode: language, text: status & 0x80 == 0 ? String(decoding: rest, as: UTF8.self) : utf16(rest))
    }

    /// A byte order mark decides; without one it is big endian (Text RTD 3.2.1).
    private static func utf16(_ octets: [UInt8]) -> String {
        var rest = octets[...]
        var isLittle = false
        if octets.starts(with: [0xFF, 0xFE]) || octets.starts(with: [0xFE, 0xFF]) {
            isLittle = octets[0] == 0xFF
            rest = rest.dropFirst(2)
        }
        let pairs = Array(rest)
        let units = stride(from: 0, to: pairs.count - 1, by: 2).map { index in
            let (first, second) = (UInt16(pairs[index]), UInt16(pairs[index + 1]))
            return isLittle ? second << 8 | first : first << 8 | second
        }
        return String(decoding: units, as: UTF16.self)
    }
}

/// The abbreviations of the NFC Forum URI RTD, by code.
enum NDEFURIPrefix {
    static let all = [
        "", "http://www.", "https://www.", "http://", "https://", "tel:", "mailto:", "ftp://anonymous:anonymous@", "ftp://ftp.",
        "ftps://", "sftp://", "smb://", "nfs://", "ftp://", "dav://", "news:", "telnet://", "imap:", "rtsp://", "urn:", "pop:",
        "sip:", "sips:", "tftp:", "btspp://", "btl2cap://", "btgoep://", "tcpobex://", "irdaobex://", "file://", "urn:epc:id:",
        "urn:epc:tag:", "urn:epc:pat:", "urn:epc:raw:", "urn:epc:", "urn:nfc:",
    ]
}
