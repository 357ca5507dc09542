// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Synchronization
import Testing
import VirtualCards

let specimenKey = "L898902C<369080619406236"

func virtualPassport(_ options: String) throws -> VirtualCardTransport {
    VirtualCardTransport(
        try VirtualCardCatalog.make(try VirtualCardSpecification(reference: "virtual:passport?" + options)))
}

/// Every way of PACE that ICAO 9303-11 9.2.3 and 9.5.1 allow, as the virtual passport's option spells it.
enum PACEMatrix {
    static let ciphers = ["3des", "aes128", "aes192", "aes256"]

    static let all: [String] = {
        var ways: [String] = []
        for cipher in ciphers {
            for group in 0...2 {
                for mapping in ["gm", "im"] { ways.append("dh-\(mapping)-\(cipher):\(group)") }
            }
            for curve in 8...18 {
                ways.append("ecdh-gm-\(cipher):\(curve)")
                // P-224 has no point encoding.
                if curve != 10 { ways.append("ecdh-im-\(cipher):\(curve)") }
                if cipher != "3des" { ways.append("ecdh-cam-\(cipher):\(curve)") }
            }
        }
        return ways
    }()
}

/// Random octets that follow from a seed.
struct SeededRandom: RandomSource {
    let seed: Int

    func octets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8] {
        var result: [UInt8] = []
        var block = 0
        while result.count < count {
            guard let piece = try? Digest.sha256.hash(Array("\(seed) \(label) \(block)".utf8)) else {
                throw EnvironmentError(code: .noRandom, detail: label)
            }
            result += piece
            block += 1
        }
        return Array(result.prefix(count))
    }
}

/// Keeps the lines of a read.
final class Lines: Sendable {
    private let kept = Mutex<[String]>([])
    var all: [String] { kept.withLock { $0 } }
    func add(_ line: String) { kept.withLock { $0.append(line) } }
}

/// A transport that changes what passes.
final class Tampering: ISO7816TagTransporting, CardConnection {
    let inner: VirtualCardTransport
    private let seen = Mutex<[(command: [UInt8], answer: [UInt8])]>([])
    private let change: @Sendable ([UInt8], [UInt8]) -> [UInt8]

    /// - Parameter change: gets a command and its answer; gives the answer to pass on.
    init(_ inner: VirtualCardTransport, _ change: @escaping @Sendable ([UInt8], [UInt8]) -> [UInt8] = { $1 }) {
        self.inner = inner
        self.change = change
    }

    /// What passed, answers as the card gave them.
    var exchanges: [(command: [UInt8], answer: [UInt8])] { seen.withLock { $0 } }
    func forget() { seen.withLock { $0 = [] } }

    var identifier: Data { inner.identifier }
    var initialAID: String { "" }
    var readerName: String { inner.readerName }
    var atr: Data { inner.atr }
    var protocolName: String { inner.protocolName }
    func send(_ data: Data) async throws -> Data { try await inner.send(data) }
    func resetCard() async throws -> Data { try await inner.resetCard() }
    func removeCard() async throws { try await inner.removeCard() }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let answer = try await inner.sendAPDU(apdu)
        seen.withLock { $0.append((apdu.octets, answer.octets)) }
        return try ResponseAPDU(bytes: change(apdu.octets, answer.octets))
    }

    func sendAPDUWithChaining(_ apdu: CommandAPDU) async throws -> ResponseAPDU { try await sendAPDU(apdu) }
}
