// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Synchronization
import VirtualCards

/// A virtual card, a key and a way to authenticate.
struct DESFireSetting: Sendable, CustomStringConvertible {
    let generation: String
    let cipher: DESFireCipher
    let method: DESFireAuthentication

    var description: String { "\(generation) \(cipher.rawValue) \(method.rawValue)" }

    static let all = [
        DESFireSetting(generation: "d40", cipher: .des, method: .legacy),
        DESFireSetting(generation: "d40", cipher: .twoKeyTripleDES, method: .legacy),
        DESFireSetting(generation: "ev1", cipher: .twoKeyTripleDES, method: .legacy),
        DESFireSetting(generation: "ev1", cipher: .des, method: .iso),
        DESFireSetting(generation: "ev1", cipher: .twoKeyTripleDES, method: .iso),
        DESFireSetting(generation: "ev1", cipher: .threeKeyTripleDES, method: .iso),
        DESFireSetting(generation: "ev1", cipher: .aes, method: .aes),
        DESFireSetting(generation: "ev2", cipher: .aes, method: .aes),
        DESFireSetting(generation: "ev2", cipher: .aes, method: .ev2First),
        DESFireSetting(generation: "ev3", cipher: .aes, method: .ev2First),
    ]

    static let application = Data([0xF0, 0x00, 0x01])

    /// Keys of which no two are alike, none of zeros: a session key of a wrong key must not be right by chance.
    func key(_ number: UInt8) throws -> DESFireKey {
        try DESFireKey(cipher, (0..<cipher.keyLength).map { UInt8(truncatingIfNeeded: 0x11 &+ $0 &* 0x1F) ^ number << 4 })
    }

    /// Files 1-3 standard data, 4-6 backup, 7-9 value, 10-12 linear, 13-15 cyclic, each plain, MACed, enciphered; key 1 reads, key 2
    /// writes, key 3 does both, key 0 changes.
    func layout() throws -> String {
        var lines = ["app F00001 \(cipher.rawValue) keys 4"]
        for number in 0..<4 { lines.append("key \(number) \(Hex.encode(try key(UInt8(number)).octets))") }
        for (index, kind) in ["std 200", "backup 200", "value -100..10000 500", "linear 24x5", "cyclic 24x4"].enumerated() {
            for (offset, mode) in ["plain", "mac", "full"].enumerated() {
                let limited = kind.hasPrefix("value") ? " limited" : ""
                lines.append("file \(3 * index + offset + 1) \(kind) \(mode) 1230\(limited)")
            }
        }
        return lines.joined(separator: "\n")
    }

    func transport() throws -> VirtualCardTransport {
        VirtualCardTransport(
            try VirtualCardCatalog.make(
                VirtualCardSpecification(kind: "desfire", arguments: ["--generation", generation, "--layout", try layout()])))
    }

    /// The card with its application selected and, but for nil, authenticated.
    func card(
        over transport: any NFCTagTransport, key number: UInt8?, framing: DESFireFraming = .isoWrapped,
        chaining: DESFireChaining = .additionalFrames
    ) async throws -> DESFireCard {
        var card = DESFireCard(transport: transport, framing: framing, chaining: chaining)
        try await card.selectApplication(Self.application)
        if let number { try await card.authenticate(keyNumber: number, key: try key(number), method: method) }
        return card
    }
}

/// Passes everything on, and may change the answers on their way.
final class Interceptor: NFCTagTransport {
    private let inner: any NFCTagTransport
    private let change: @Sendable ([UInt8], ResponseAPDU) throws -> ResponseAPDU

    init(_ inner: any NFCTagTransport, _ change: @escaping @Sendable ([UInt8], ResponseAPDU) throws -> ResponseAPDU) {
        self.inner = inner
        self.change = change
    }

    var identifier: Data { inner.identifier }
    func send(_ data: Data) async throws -> Data { try await inner.send(data) }
    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        try change(apdu.octets, try await inner.sendAPDU(apdu))
    }
}

/// A card that is taken away at a command: before it takes effect, or after it, so that only its answer is lost.
final class Vanishing: NFCTagTransport {
    private let inner: any NFCTagTransport
    private let command: Int
    private let takesEffect: Bool
    private let count = Mutex(0)

    init(_ inner: any NFCTagTransport, at command: Int, takesEffect: Bool) {
        self.inner = inner
        self.command = command
        self.takesEffect = takesEffect
    }

    var identifier: Data { inner.identifier }
    func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("send") }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let number = count.withLock { count in
            count += 1
            return count
        }
        if number < command { return try await inner.sendAPDU(apdu) }
        if number == command, takesEffect { _ = try await inner.sendAPDU(apdu) }
        throw TransportError(.tagConnectionLost, code: 0x8010_0069)
    }
}
