// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets
import TraceDecoding
import VirtualCards

/// What was wrong with the protection of a recorded answer. A run has to meet it again: the library must fail as it did.
struct ProtectionFault: Sendable, Equatable {
    /// A code over the answer was wrong. Where its last octet lies, counted from the end of the data: 1 is the last one.
    var wrongCode: Int?
    /// The status word inside (DO `99`), where it is not the one outside.
    var status: [UInt8]?
    /// The tags of secure messaging in their order, where they are not those that a card gives for such an answer.
    var objects: [UInt32]?
    /// The deciphered data with its padding, where that is none (ISO/IEC 7816-4 10.2.3.1).
    var padded: [UInt8]?

    /// - Parameters:
    ///   - decoder: that has just read the answer.
    ///   - data: the whole answer's data as it travelled.
    ///   - isInside: whether the command came through a channel.
    ///   - plain: what the channel opened the answer to.
    /// - Returns: nil when nothing is wrong that this can tell.
    init?(
        _ decoder: Decoder, _ outcome: Decoder.Outcome, _ index: GrammarIndex, data: [UInt8], status: [UInt8], isInside: Bool,
        plain: [UInt8]?
    ) {
        let failed = decoder.annotations[outcome.annotations].first {
            $0.code == .failed && index.authentications.contains($0.check)
        }
        if let failed { wrongCode = Self.distance(of: Int(failed.span), in: decoder, data.count) }
        if isInside, decoder.hasLayer("SM"), !data.isEmpty, let objects = try? TLV.parse(data, TLVRules(allowsFiller: false)) {
            readObjects(objects, decoder, status, plain)
        }
        if self == ProtectionFault() { return nil }
    }

    private init() {}

    private mutating func readObjects(_ objects: [TLV], _ decoder: Decoder, _ status: [UInt8], _ plain: [UInt8]?) {
        let tags = objects.map(\.tag)
        let usual: [UInt32] = [0x99, 0x8E]
        let hasData = plain.map { $0.count > 2 } ?? true
        if tags != (hasData ? [0x87] : []) + usual, tags != (hasData ? [0x85] : []) + usual { self.objects = tags }
        if let inside = objects.first(where: { $0.tag == 0x99 }).map({ Array($0.value) }), inside.count == 2, inside != status {
            self.status = inside
        }
        if plain == nil { padded = Self.deciphered(objects, decoder) }
    }

    /// The blocks of a cryptogram that has no padding; nil when the keys are not here.
    private static func deciphered(_ objects: [TLV], _ decoder: Decoder) -> [UInt8]? {
        guard let key = decoder.octets("enc", of: "SM"), let counter = decoder.octets("ssc", of: "SM"),
            let object = objects.first(where: { $0.tag == 0x87 || $0.tag == 0x85 })
        else { return nil }
        let sealed = Array(object.tag == 0x87 ? object.value.dropFirst() : object.value)
        return PassportAgreement.deciphered(sealed, encryption: key, counter: counter)
    }

    private static func distance(of span: Int, in decoder: Decoder, _ count: Int) -> Int {
        guard decoder.spans.indices.contains(span), decoder.spans[span].buffer == 0 else { return 1 }
        let end = Int(decoder.spans[span].startBit &+ decoder.spans[span].bitCount) / 8
        return end <= count ? max(1, count - end + 1) : 1
    }

    // MARK: - In a run

    /// Puts what was wrong into the data of an answer that is right.
    func spoil(_ data: [UInt8]) -> [UInt8] {
        var data = data
        if let objects, let right = try? TLV.parse(data, TLVRules(allowsFiller: false)) {
            var left = right
            data = []
            for tag in objects {
                guard let place = left.firstIndex(where: { $0.tag == tag }) else { continue }
                let object = left.remove(at: place)
                data += TLV.encode(object.tag, Array(object.value))
            }
        }
        if let wrongCode, wrongCode <= data.count { data[data.count - wrongCode] ^= 0x01 }
        return data
    }
}
