// SPDX-License-Identifier: MIT

import Foundation
import Octets
import SessionSupport
import TagTransport
import TestSupport
import Testing
import TraceFile
import Tracing

/// Show 5: what is secret cannot be found in the trace, in no spelling.
@Suite struct SecrecyTests {
    /// A file that is searched for secrets as octets, as hexadecimal digits and as base64.
    struct Haystack {
        let data: Data

        init(_ octets: [UInt8]) { data = Data(octets) }

        /// The spelling in which `secret` stands in the file; nil when it does not.
        func finds(_ secret: [UInt8]) -> String? {
            var spellings: [(String, [UInt8])] = [
                ("raw", secret), ("upper hex", Array(Hex.encode(secret).utf8)),
                ("lower hex", Array(Hex.encode(secret).lowercased().utf8)),
                ("reversed", secret.reversed()),
            ]
            for shift in 0..<3 {
                // Octets before it move its base64 digits; the first and last digits depend on neighbours and are left out.
                let shifted = Data([UInt8](repeating: 0, count: shift) + secret).base64EncodedString().prefix { $0 != "=" }
                let digits = shifted.dropFirst(shift == 0 ? 0 : shift + 1).dropLast()
                if digits.count >= 5 { spellings.append(("base64 at \(shift)", Array(digits.utf8))) }
            }
            return spellings.first { data.range(of: Data($0.1)) != nil }?.0
        }
    }

    @Test func theSearchFindsWhatIsThere() {
        let secret = Array("L898902C<".utf8)
        #expect(Haystack([1] + secret + [2]).finds(secret) == "raw")
        #expect(Haystack(Array("x4C3839383930324".utf8) + Array("33C".utf8)).finds(secret) == "upper hex")
        for before in ["", "a", "bc"] {
            let text = Data(Array(before.utf8) + secret + Array("tail".utf8)).base64EncodedString()
            #expect(Haystack(Array(text.utf8)).finds(secret) != nil)
        }
        #expect(Haystack(Array("nothing of it".utf8)).finds(secret) == nil)
    }

    @Test func nothingThatOpensAPassportStandsInItsTrace() async throws {
        let session = try await Session.passport()
        let file = Haystack(try session.folder.octets("a.pcapng"))
        let words = [
            specimenKey, "L898902C<3", "L898902C", "6908061", "690806", "9406236", "940623", "ERIKSSON", "ANNA<MARIA", "ANNA",
            "MARIA",
            "ZE184226B", "P<UTOERIKSSON",
        ]
        for word in words { #expect(file.finds(Array(word.utf8)) == nil, "\(word)") }
        // Everything that the side file holds: draws, keys, the argument, progress texts and the result.
        #expect(session.secrets.records.count > 10)
        for record in session.secrets.records where record.octets.count >= 4 {
            #expect(file.finds(record.octets) == nil, "\(record.name)")
        }
        for name in ["bac.seed", "secureMessaging.enc", "secureMessaging.mac", "secureMessaging.ssc"] {
            #expect(session.secrets.keys(named: name).count == 1)
        }
    }

    @Test func noPartOfAResultStandsInTheTrace() async throws {
        let session = try await Session.passport()
        let file = Haystack(try session.folder.octets("a.pcapng"))
        let result = try JSONValue.parse(try #require(session.result))
        var texts: [String] = []
        func collect(_ value: JSONValue) {
            switch value {
            case .string(let text): texts.append(text)
            case .array(let items): items.forEach(collect)
            case .object(let members): members.values.forEach(collect)
            default: break
            }
        }
        collect(result)
        // Short words such as dates' parts, `com` or `read` stand in rows by right.
        let private_ = texts.filter { $0.count >= 8 && !["succeeded", "notAdvertised", "notSupported"].contains($0) }
        #expect(private_.count > 5)
        for text in private_ where text != "not performed" { #expect(file.finds(Array(text.utf8)) == nil, "\(text.prefix(40))") }
    }

    @Test(arguments: ["4711", "90210", "12345678"]) func noPINStandsInTheTraceOfAScript(_ pin: String) async throws {
        let octets = Array(pin.utf8)
        let length = Hex.encode([UInt8(octets.count)])
        let script = """
            00A40000023F00
            00200001 \(length) \(Hex.encode(octets))
            00200001 0000\(length) \(Hex.encode(octets))
            00240001 \(Hex.encode([UInt8(octets.count * 2)])) \(Hex.encode(octets + octets))
            002C0101 \(length) \(Hex.encode(octets))
            """
        let session = try await Session.script(script, "virtual:filesystem?pin=\(pin)")
        #expect(session.result != nil)
        let file = Haystack(try session.folder.octets("a.pcapng"))
        #expect(file.finds(octets) == nil)
        #expect(session.secrets.records.count { $0.name.isEmpty && $0.octets.starts(with: octets) } == 4)
        // The script holds it too and is an argument.
        #expect(Haystack(try session.folder.octets("a.secrets")).finds(octets) != nil)
    }

    /// A checksum of four octets of which two are known, say, lets the others be found by trying.
    @Test func noChecksumOfASealedByteStandsInTheTrace() async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let password = hex("1BDEADBEEF")
        let transport = recording.wrap(ScriptedTransport([.success(hex("7788") + crcA(hex("7788")))]))
        _ = try await transport.send(Data(password + crcA(password)))
        try recording.close()
        let file = Data(try folder.octets("a.pcapng"))
        let trace = try Trace.load(path: folder("a.pcapng"))
        #expect(trace.exchanges == ["> 1B000000000000", "< 00000000"])
        #expect(trace.rows.compactMap(\.comments.first) == ["tapdeck sealed 1+4,5+2", "tapdeck sealed 0+4"])
        for secret in [password.dropFirst() + [], hex("7788"), crcA(password), crcA(hex("7788"))] {
            // A single pair of octets may stand in a stamp by chance: rows are what is searched.
            let rows = trace.rows.filter { trace.kind(of: $0) == .rf(0) }.flatMap(\.body)
            #expect(Data(rows).range(of: Data(secret)) == nil)
        }
        #expect(file.range(of: Data(password)) == nil)
        let store = try SecretStore.load(forTrace: folder("a.pcapng")).store
        #expect(store.records.map(\.octets).contains(hex("DEADBEEF")))
    }

    private func crcA(_ frame: [UInt8]) -> [UInt8] {
        var sum: UInt16 = 0x6363
        for octet in frame {
            sum ^= UInt16(octet)
            for _ in 0..<8 { sum = sum & 1 != 0 ? sum >> 1 ^ 0x8408 : sum >> 1 }
        }
        return [UInt8(truncatingIfNeeded: sum), UInt8(truncatingIfNeeded: sum >> 8)]
    }
}
