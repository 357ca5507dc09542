// SPDX-License-Identifier: MIT

import CardCrypto
import Octets
import Testing
import VirtualCards

/// The reader's end of BAC and secure messaging, for tests only: written from ICAO 9303-11 4.3 and 9.8, apart from the card's end.
struct Terminal {
    let card: VirtualCard
    var enc: [UInt8] = []
    var mac: [UInt8] = []
    var ssc: UInt64 = 0

    init(_ card: VirtualCard) { self.card = card }

    /// SELECT, GET CHALLENGE, EXTERNAL AUTHENTICATE; the status word of the first that fails.
    mutating func open(key: String = "L898902C<369080619406236") throws -> String {
        let select = try card.send("00A4040C07A0000002471001")
        guard select == [0x90, 0x00] else { return Hex.encode(select.suffix(2)) }
        let rndIC = Array(try card.send("0084000008").prefix(8))
        let seed = Array(try Digest.sha1.hash(Array(key.utf8))[..<16])
        let kEnc = try KeyDerivation.key(from: seed, counter: 1, for: .tripleDES)
        let kMac = try KeyDerivation.key(from: seed, counter: 2, for: .tripleDES)
        let rndIFD: [UInt8] = Array(1...8)
        let kIFD: [UInt8] = Array(0x30...0x3F)
        let cryptogram = try BlockCipher.tripleDES.encrypt(rndIFD + rndIC + kIFD, key: kEnc)
        let token = cryptogram + (try RetailMAC.authenticate(cryptogram, key: kMac))
        let answer = try card.send([0, 0x82, 0, 0, 0x28] + token + [0x28])
        guard answer.count == 42 else { return Hex.encode(answer) }
        #expect(try RetailMAC.authenticate(Array(answer[..<32]), key: kMac) == Array(answer[32..<40]))
        let plain = try BlockCipher.tripleDES.decrypt(Array(answer[..<32]), key: kEnc)
        #expect(Array(plain[..<16]) == rndIC + rndIFD)
        let session = zip(kIFD, plain[16...]).map { $0 ^ $1 }
        enc = try KeyDerivation.key(from: session, counter: 1, for: .tripleDES)
        mac = try KeyDerivation.key(from: session, counter: 2, for: .tripleDES)
        ssc = (rndIC[4...] + rndIFD[4...]).reduce(0) { $0 << 8 | UInt64($1) }
        return "9000"
    }

    private var counter: [UInt8] { (0..<8).reversed().map { UInt8(truncatingIfNeeded: ssc >> (8 * UInt64($0))) } }

    /// A secured command. The counter goes up by one.
    mutating func wrap(
        _ header: [UInt8], data: [UInt8] = [], ne: Int? = nil, isExtended: Bool = false, asDO85: Bool? = nil
    ) throws -> [UInt8] {
        ssc &+= 1
        var objects: [UInt8] = []
        if !data.isEmpty {
            var padded = data + [0x80]
            while padded.count % 8 != 0 { padded.append(0) }
            let cryptogram = try BlockCipher.tripleDES.encrypt(padded, key: enc)
            objects += asDO85 ?? (header[1] & 1 == 1) ? TLV.encode(0x85, cryptogram) : TLV.encode(0x87, [1] + cryptogram)
        }
        if let ne { objects += TLV.encode(0x97, isExtended ? [UInt8(ne >> 8 & 0xFF), UInt8(ne & 0xFF)] : [UInt8(ne & 0xFF)]) }
        let secured = [header[0] | 0x0C] + header[1...]
        objects += TLV.encode(0x8E, try RetailMAC.authenticate(counter + secured + [0x80, 0, 0, 0] + objects, key: mac))
        return isExtended
            ? secured + [0, UInt8(objects.count >> 8), UInt8(objects.count & 0xFF)] + objects + [0, 0]
            : secured + [UInt8(objects.count)] + objects + [0]
    }

    /// What is inside a secured answer, in hexadecimal with its status word; a bare one begins with `bare `.
    mutating func unwrap(_ answer: [UInt8]) throws -> String {
        ssc &+= 1
        let objects = try TLV.parse(Array(answer.dropLast(2)))
        guard let last = objects.last, last.tag == 0x8E else { return "bare " + Hex.encode(answer) }
        #expect(try RetailMAC.authenticate(counter + answer[..<last.offset], key: mac) == Array(last.value))
        var text = ""
        for object in objects {
            switch object.tag {
            case 0x85, 0x87:
                let value = object.tag == 0x87 ? Array(object.value.dropFirst()) : Array(object.value)
                let plain = try BlockCipher.tripleDES.decrypt(value, key: enc)
                text += Hex.encode(try #require(Padding.unpad(plain)))
            case 0x99:
                #expect(Array(object.value) == Array(answer.suffix(2)))
                text += Hex.encode(object.value)
            default: break
            }
        }
        return text
    }

    mutating func send(
        _ header: String, data: String = "", ne: Int? = nil, isExtended: Bool = false, asDO85: Bool? = nil
    ) throws -> String {
        let command = try wrap(
            try Hex.decode(header), data: try Hex.decode(data), ne: ne, isExtended: isExtended, asDO85: asDO85)
        return try unwrap(try card.send(command))
    }

    /// The whole of a file by its short identifier, in pieces of `step`.
    mutating func read(_ file: UInt8, step: Int = 0xA0) throws -> [UInt8] {
        let head = try Hex.decode(try send("00B0" + Hex.encode([0x80 | file]) + "00", ne: 4))
        let header = try #require(try TLV.header(in: head.dropLast(2)[...]))
        let length = header.headerLength + header.valueLength
        var content = Array(head.dropLast(2).prefix(length))
        while content.count < length {
            let piece = try Hex.decode(
                try send(
                    "00B0" + Hex.encode([UInt8(content.count >> 8), UInt8(content.count & 0xFF)]),
                    ne: min(step, length - content.count)))
            guard piece.count > 2 else { return content }
            content += piece.dropLast(2)
        }
        return content
    }
}
