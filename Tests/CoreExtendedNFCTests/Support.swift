// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Synchronization

func octets(_ hex: String) -> [UInt8] { (try? Hex.decode(hex)) ?? [] }
func data(_ hex: String) -> Data { Data(octets(hex)) }
func command(_ hex: String) throws -> CommandAPDU { try CommandAPDU(bytes: octets(hex)) }
func response(_ hex: String) throws -> ResponseAPDU { try ResponseAPDU(bytes: octets(hex)) }

/// Hands out fixed octets by label, again and again.
struct FixedRandom: RandomSource {
    let draws: [String: [UInt8]]

    func octets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8] {
        guard let draw = draws[label] else { throw EnvironmentError(code: .drawNotRecorded, detail: label) }
        guard draw.count == count else { throw EnvironmentError(code: .drawOfOtherLength, detail: label) }
        return draw
    }
}

/// Keeps what was logged, in order.
final class KeyCollector: KeySink {
    private let kept = Mutex<[(name: String, octets: [UInt8])]>([])

    func log(_ name: String, _ octets: [UInt8]) { kept.withLock { $0.append((name, octets)) } }

    var names: [String] { kept.withLock { $0.map(\.name) } }
    subscript(name: String) -> [UInt8]? { kept.withLock { $0.first { $0.name == name }?.octets } }
}

/// A chip that answers each command by a closure over its number and octets.
final class ScriptedChip: NFCTagTransport {
    private let answer: @Sendable (Int, [UInt8]) throws -> [UInt8]
    private let seen = Mutex<[[UInt8]]>([])

    init(_ answer: @escaping @Sendable (Int, [UInt8]) throws -> [UInt8]) { self.answer = answer }

    /// A chip that knows these exchanges in this order and is gone after them.
    convenience init(exchanges: [(String, String)]) {
        let script = exchanges.map { (octets($0.0), octets($0.1)) }
        self.init { number, command in
            guard number < script.count else { throw TransportError(.tagConnectionLost, detail: "the script is over") }
            guard script[number].0 == command else {
                throw TransportError(.malformedResponse, detail: "exchange \(number): \(Hex.encode(command)) was not expected")
            }
            return script[number].1
        }
    }

    var commands: [[UInt8]] { seen.withLock { $0 } }
    var identifier: Data { Data([0x08, 1, 2, 3]) }
    func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("send") }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let number = seen.withLock { seen in
            seen.append(apdu.octets)
            return seen.count - 1
        }
        do {
            return try ResponseAPDU(bytes: try answer(number, apdu.octets))
        } catch let error as APDUError {
            throw TransportError(.malformedResponse, detail: error.description)
        }
    }
}
