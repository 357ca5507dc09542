// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Foundation
import Octets
import TestSupport
import Testing

private let host = PythonHost("ndef_peer.py", packages: "ndeflib")

/// Every kind of NDEF record against ndeflib, both ways.
@Suite(.enabled(if: host.isAvailable, Comment(rawValue: host.reason)))
struct NDEFPeerTests {
    /// A line of the host: octets, and what each record holds.
    private func lines(_ outcome: ProcessRunner.Outcome) throws -> [(octets: [UInt8], told: [[String]])] {
        try #require(outcome.end == .status(0), "\(outcome.errorText)")
        return try outcome.outputText.split(separator: "\n").map { line in
            let parts = line.split(separator: " ", maxSplits: 1)
            let told = try JSONSerialization.jsonObject(with: Data(try #require(parts.last).utf8)) as? [[String]]
            return (try Hex.decode(String(parts[0])), try #require(told))
        }
    }

    /// What a record holds, in the host's words.
    private func told(_ record: NDEFRecord) -> [String] {
        let (name, data) = (String(decoding: record.identifier, as: UTF8.self), Hex.encode([UInt8](record.payload)))
        return switch record.parsedPayload {
        case .text(let language, let text): ["text", language, text]
        case .uri(let uri): ["uri", uri]
        case .smartPoster(let uri, let title): ["poster", uri ?? "", title ?? ""]
        case .mime(let type, _): [type, name, data]
        case .external(let type, _): ["urn:nfc:ext:\(type)", name, data]
        case .empty: ["", name, data]
        case .unknown: ["unknown", name, data]
        }
    }

    private static let built: [NDEFMessage] =
        [
            .text("hello"), .text("Grüße", languageCode: "de-AT"), .text("", languageCode: "en"),
            .text("日本語", languageCode: "ja"),
            NDEFMessage(records: [.smartPoster(uri: "https://example.com/menu", title: "the menu")]),
            NDEFMessage(records: [.smartPoster(uri: "tel:+4930123456")]),
            NDEFMessage(records: [.mime("text/plain", Data("plain".utf8))]),
            NDEFMessage(records: [.mime("application/octet-stream", Data(repeating: 7, count: 70_000))]),
            NDEFMessage(records: [.external("example.com:thing", Data([1, 2]))]),
            NDEFMessage(records: [.empty]), NDEFMessage(records: []),
            NDEFMessage(records: [NDEFRecord(typeNameFormat: .unknown, payload: Data([9]))]),
            NDEFMessage(records: [
                .text("first"), .uri("http://www.nfc.com"),
                NDEFRecord(
                    typeNameFormat: .mimeMedia, type: Data("image/png".utf8), identifier: Data("id".utf8), payload: Data([1])),
            ]),
        ]
        + [
            "http://www.example.com", "https://www.example.com/", "http://example.com", "https://example.com", "tel:+1",
            "mailto:a@example.com", "ftp://anonymous:anonymous@ftp.example.com", "ftp://ftp.example.com", "ftps://example.com",
            "sftp://example.com", "smb://example.com", "nfs://example.com", "ftp://example.com", "dav://example.com", "news:a.b",
            "telnet://example.com", "imap:a", "rtsp://example.com", "urn:isbn:1", "pop:a", "sip:a@example.com",
            "sips:a@example.com", "tftp:a", "btspp://a", "btl2cap://a", "btgoep://a", "tcpobex://a", "irdaobex://a", "file://a",
            "urn:epc:id:1", "urn:epc:tag:1", "urn:epc:pat:1", "urn:epc:raw:1", "urn:epc:1", "urn:nfc:sn:1", "x-unknown:1",
        ].map { .uri($0) }

    @Test func whatIsBuiltHereIsReadThere() async throws {
        let input = Self.built.map { Hex.encode([UInt8]($0.data)) }.joined(separator: "\n")
        let lines = try lines(await host.run(["read"], input: Data(input.utf8)))
        try #require(lines.count == Self.built.count)
        for (message, line) in zip(Self.built, lines) {
            #expect(line.octets == [UInt8](message.data))
            #expect(line.told == (message.records.isEmpty ? [.empty] : message.records).map(told))
        }
    }

    @Test func whatIsBuiltThereIsReadHere() async throws {
        let lines = try lines(await host.run(["write"]))
        #expect(lines.count == 14)
        for line in lines {
            let message = try NDEFMessage(data: line.octets)
            #expect(message.records.map(told) == line.told)
            #expect([UInt8](message.data) == line.octets)
        }
    }
}
