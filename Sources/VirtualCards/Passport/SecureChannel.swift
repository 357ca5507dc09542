// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The card's end of secure messaging (ICAO 9303-11 9.8; ISO/IEC 7816-4 10): keys, send sequence counter, and nothing of what the
/// commands mean.
struct SecureChannel: Sendable, Equatable {
    enum Suite: Sendable {
        /// Two-key triple DES in CBC mode with a zero vector, retail MAC, a counter of eight octets.
        case tripleDES
        /// AES in CBC mode with the encrypted counter as vector, CMAC cut to eight octets, a counter of sixteen.
        case aes

        var cipher: BlockCipher { self == .tripleDES ? .tripleDES : .aes }
        var blockLength: Int { cipher.blockLength }
    }

    let suite: Suite
    let encryptionKey: [UInt8]
    let authenticationKey: [UInt8]
    private(set) var counter: [UInt8]

    /// - Parameter counter: its value before the first command; as many octets as a block.
    init(_ suite: Suite, encryptionKey: [UInt8], authenticationKey: [UInt8], counter: [UInt8]) {
        self.suite = suite
        self.encryptionKey = encryptionKey
        self.authenticationKey = authenticationKey
        self.counter = counter
    }

    /// Checks a secured command and gives what is inside. The counter goes up by one.
    ///
    /// - Throws: `6987` when an object is missing, `6988` when one is wrong; the session is then lost (9.8.3).
    mutating func open(_ command: CardCommand) throws(StatusWord) -> CardCommand {
        guard !command.data.isEmpty else { throw .secureMessagingObjectMissing }
        guard let objects = try? TLV.parse(command.data, TLVRules(allowsFiller: false)) else { throw .secureMessagingObjectWrong }
        guard let mac = objects.last, mac.tag == 0x8E else { throw .secureMessagingObjectMissing }
        increment()
        let header = Padding.pad([command.cla, command.ins, command.p1, command.p2], to: suite.blockLength)
        guard equalInConstantTime(try authenticate(header + command.data[..<mac.offset]), Array(mac.value)) else {
            throw .secureMessagingObjectWrong
        }
        var inner = CardCommand(cla: command.cla & 0xF3, ins: command.ins, p1: command.p1, p2: command.p2)
        inner.isExtended = command.isExtended
        var last: UInt32 = 0
        for object in objects.dropLast() {
            switch object.tag {
            case 0x85, 0x87:
                guard last == 0 else { throw .secureMessagingObjectWrong }
                inner.data = try decrypt(object)
            case 0x97:
                guard last != 0x97 else { throw .secureMessagingObjectWrong }
                (inner.ne, inner.isExtended) = try Self.expectedLength(object.value)
            default: throw .secureMessagingObjectWrong
            }
            last = object.tag
        }
        return inner
    }

    /// Writes a secured answer (9.8.6): the data, if any, under `87`, or `85` for an odd instruction code; the status word under `99`; the
    /// MAC under `8E`. The counter goes up by one.
    ///
    /// - Parameter isPadded: whether the data has its padding, right or wrong.
    /// - Throws: `6988` when libcrypto fails.
    mutating func seal(_ reply: CardReply, isOdd: Bool, isPadded: Bool = false) throws(StatusWord) -> CardReply {
        increment()
        var octets: [UInt8] = []
        if !reply.data.isEmpty {
            let cryptogram = try encrypt(isPadded ? reply.data : Padding.pad(reply.data, to: suite.blockLength))
            octets = isOdd ? TLV.encode(0x85, cryptogram) : TLV.encode(0x87, [0x01] + cryptogram)
        }
        octets += TLV.encode(0x99, reply.status.octets)
        octets += TLV.encode(0x8E, try authenticate(octets))
        return CardReply(octets, reply.status)
    }

    /// The most octets of plain data whose secured answer has a data field of at most `length` octets; 0 when none fit.
    func room(in length: Int, isOdd: Bool) -> Int {
        // DO 99 and DO 8E.
        let left = length - 4 - 10
        let indicator = isOdd ? 0 : 1
        var blocks = max(0, left) / suite.blockLength
        while blocks > 0 {
            let value = blocks * suite.blockLength + indicator
            if 1 + TLV.lengthOctets(value).count + value <= left { return blocks * suite.blockLength - 1 }
            blocks -= 1
        }
        return 0
    }

    private mutating func increment() {
        for index in counter.indices.reversed() {
            counter[index] &+= 1
            if counter[index] != 0 { return }
        }
    }

    private func authenticate(_ octets: [UInt8]) throws(StatusWord) -> [UInt8] {
        do {
            // The MAC's own padding comes on top of the header's, also when no object follows the header.
            switch suite {
            case .tripleDES: return try RetailMAC.authenticate(counter + octets, key: authenticationKey)
            case .aes:
                return Array(try CMAC.authenticate(Padding.pad(counter + octets, to: 16), key: authenticationKey).prefix(8))
            }
        } catch {
            throw .secureMessagingObjectWrong
        }
    }

    private func encrypt(_ octets: [UInt8]) throws(StatusWord) -> [UInt8] {
        do {
            return try suite.cipher.encrypt(octets, key: encryptionKey, iv: try vector())
        } catch {
            throw .secureMessagingObjectWrong
        }
    }

    /// `87` begins with the padding indicator `01`; `85` has none, but one is put up with.
    private func decrypt(_ object: TLV) throws(StatusWord) -> [UInt8] {
        var value = object.value
        if object.tag == 0x87 || value.count % suite.blockLength == 1 {
            guard value.first == 0x01 else { throw .secureMessagingObjectWrong }
            value = value.dropFirst()
        }
        do {
            let padded = try suite.cipher.decrypt(Array(value), key: encryptionKey, iv: try vector())
            guard let plain = Padding.unpad(padded) else { throw StatusWord.secureMessagingObjectWrong }
            return plain
        } catch {
            throw .secureMessagingObjectWrong
        }
    }

    /// A cryptogram's blocks, with their padding; nil when it is none.
    func blocks(of cryptogram: [UInt8]) -> [UInt8]? {
        guard !cryptogram.isEmpty else { return nil }
        return try? suite.cipher.decrypt(cryptogram, key: encryptionKey, iv: try vector())
    }

    private func vector() throws(CryptoError) -> [UInt8]? {
        suite == .tripleDES ? nil : try BlockCipher.aes.encrypt(counter, key: encryptionKey)
    }

    /// Le inside: one octet, or two for an extended one.
    private static func expectedLength(_ value: ArraySlice<UInt8>) throws(StatusWord) -> (Int, Bool) {
        let number = value.reduce(0) { $0 << 8 | Int($1) }
        switch value.count {
        case 1: return (number == 0 ? 256 : number, false)
        case 2: return (number == 0 ? 65_536 : number, true)
        default: throw .secureMessagingObjectWrong
        }
    }
}
