// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials

/// The MAC over a transaction that a card of EV2 or later makes, for a back end that has the application's transaction MAC key.
///
/// No values of it are published; the rules are those of the data sheet of MIFARE DESFire Light (MF2DLHX0 10.3.2).
public struct DESFireTransactionMAC: Sendable, Codable, Equatable {
    /// TMC after the commit.
    public var counter: UInt32
    /// TMV, eight octets.
    public var mac: Data

    public init(counter: UInt32, mac: Data) {
        self.counter = counter
        self.mac = mac
    }

    /// Whether the card with `uid` made this MAC over `input`.
    public func verify(key: DESFireKey, uid: Data, input: DESFireTransactionInput) throws -> Bool {
        do {
            let expected = try Self.compute(key: key.octets, uid: [UInt8](uid), counter: counter, input: input.octets)
            return equalInConstantTime([UInt8](mac), expected)
        } catch {
            throw NFCError.cryptoError(error.detail)
        }
    }

    static func compute(key: [UInt8], uid: [UInt8], counter: UInt32, input: [UInt8]) throws(CryptoError) -> [UInt8] {
        let count = (0..<4).map { UInt8(truncatingIfNeeded: counter >> (8 * UInt32($0))) }
        var vector: [UInt8] = [0x5A, 0x00, 0x01, 0x00, 0x80] + count + uid
        while vector.count % 16 != 0 { vector.append(0) }
        return oddOctets(try CMAC.authenticate(input, key: try CMAC.authenticate(vector, key: key)))
    }
}

/// TMI: what a transaction MAC is made over. Each part is filled with zeros to a multiple of 16 octets.
public struct DESFireTransactionInput: Sendable, Equatable {
    public private(set) var octets: [UInt8] = []

    public init() {}

    /// Adds a command: its code and parameters, then its data.
    public mutating func append(_ code: DESFireCommandCode, header: Data, data: Data = Data()) {
        append([code.rawValue] + header)
        if !data.isEmpty { append([UInt8](data)) }
    }

    private mutating func append(_ part: [UInt8]) {
        octets += part
        while octets.count % 16 != 0 { octets.append(0) }
    }
}
