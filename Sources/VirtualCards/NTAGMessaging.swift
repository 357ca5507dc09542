// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// Secure Dynamic Messaging of an NTAG 424 DNA's file: what is mirrored into it, and where (NT4H2421Gx 10.7.1).
struct NTAGMessaging: Sendable, Equatable {
    /// As ChangeFileSettings brought it and GetFileSettings tells it.
    let octets: [UInt8]
    /// SDMReadCtr, 24 bits.
    var counter: UInt32
    let options: UInt8
    /// Half octets: key 0-4, `E` free and plain, `F` never.
    let metaRead: UInt8
    let fileRead: UInt8
    let counterRead: UInt8
    private(set) var uidOffset: Int?
    private(set) var counterOffset: Int?
    private(set) var piccOffset: Int?
    private(set) var macInputOffset: Int?
    private(set) var cipherOffset: Int?
    private(set) var cipherLength: Int?
    private(set) var macOffset: Int?
    private(set) var counterLimit: UInt32?

    init(_ octets: [UInt8], counter: UInt32) throws(DESFireRefusal) {
        self.octets = octets
        self.counter = counter
        guard octets.count >= 3 else { throw .length }
        options = octets[0]
        counterRead = octets[1] & 0x0F
        metaRead = octets[2] >> 4
        fileRead = octets[2] & 0x0F
        // Reserved half octet, reserved options, and a mirror of ASCII alone.
        guard octets[1] >> 4 == 0x0F, options & 0x0E == 0, options & 0x01 == 1 else { throw .parameter }
        var rest = octets[3...]
        func take(_ condition: Bool) throws(DESFireRefusal) -> Int? {
            guard condition else { return nil }
            guard rest.count >= 3 else { throw .length }
            defer { rest = rest.dropFirst(3) }
            return rest.prefix(3).reversed().reduce(0) { $0 << 8 | Int($1) }
        }
        let (hasUID, hasCounter) = (options & 0x80 != 0, options & 0x40 != 0)
        uidOffset = try take(hasUID && metaRead == 0x0E)
        counterOffset = try take(hasCounter && metaRead == 0x0E)
        piccOffset = try take(metaRead <= 4)
        macInputOffset = try take(fileRead != 0x0F)
        cipherOffset = try take(fileRead != 0x0F && options & 0x10 != 0)
        cipherLength = try take(fileRead != 0x0F && options & 0x10 != 0)
        macOffset = try take(fileRead != 0x0F)
        counterLimit = try take(options & 0x20 != 0).map { UInt32($0) }
        guard rest.isEmpty else { throw .length }
        if let cipherLength { guard cipherLength > 0, cipherLength % 32 == 0 else { throw .parameter } }
    }

    /// Whether every mirror lies inside a file of this size, and the MAC behind what it covers.
    func fits(_ size: Int) -> Bool {
        let ends = [
            uidOffset.map { $0 + 14 }, counterOffset.map { $0 + 6 }, piccOffset.map { $0 + 48 }, macOffset.map { $0 + 16 },
            cipherOffset.map { $0 + (cipherLength ?? 0) },
        ]
        let isOrdered = (macInputOffset ?? 0) <= (macOffset ?? 0)
        return isOrdered && ends.allSatisfy { ($0 ?? 0) <= size }
    }
}

/// A file with its mirrors in place, kept while a reader goes through it from front to back.
struct NTAGImage: Sendable {
    var file: UInt8
    var data: [UInt8]
    var offset: Int
}

extension DESFireCardMachine {
    /// The file as somebody without a session sees it; each reading from the front counts (NT4H2421Gx 9.3.2).
    mutating func mirrored(
        _ number: UInt8, _ file: DESFireFile, _ data: [UInt8], from offset: Int
    ) throws(DESFireRefusal) -> [UInt8] {
        if let before = image, before.file == number, before.offset < offset {
            image?.offset = offset
            return before.data
        }
        guard var messaging = file.messaging else { return data }
        let limit = messaging.counterLimit ?? 0xFF_FFFF
        guard messaging.counter < limit else { throw .authentication }
        messaging.counter += 1
        application.files[number]?.messaging = messaging
        let image = mirrored(data, messaging)
        self.image = NTAGImage(file: number, data: image, offset: offset)
        return image
    }

    private mutating func mirrored(_ data: [UInt8], _ messaging: NTAGMessaging) -> [UInt8] {
        var image = data
        func put(_ octets: [UInt8], at offset: Int) {
            let text = Array(Hex.encode(octets).utf8)
            guard offset >= 0, offset + text.count <= image.count else { return }
            image.replaceSubrange(offset..<offset + text.count, with: text)
        }
        let count = littleEndian(Int(messaging.counter), 3)
        let uid = messaging.options & 0x80 != 0 ? memory.uid : nil
        let counter = messaging.options & 0x40 != 0 ? count : nil
        if let offset = messaging.uidOffset { put(memory.uid, at: offset) }
        if let offset = messaging.counterOffset { put(count.reversed(), at: offset) }
        if let offset = messaging.piccOffset { put(piccData(messaging, uid, counter), at: offset) }
        guard messaging.fileRead <= 4, let macOffset = messaging.macOffset else { return image }
        let key = application.keys[Int(messaging.fileRead)].octets
        if let offset = messaging.cipherOffset, let length = messaging.cipherLength {
            let plain = Array(data[offset..<offset + length / 2])
            put(encipher(plain, key, uid, counter, count), at: offset)
        }
        let input = Array(image[(messaging.macInputOffset ?? macOffset)..<macOffset])
        put(oddOctets(mac(input, key, uid, counter)), at: macOffset)
        return image
    }

    /// PICCData (NT4H2421Gx 9.3.4): what is mirrored, random octets to a block, enciphered.
    private mutating func piccData(_ messaging: NTAGMessaging, _ uid: [UInt8]?, _ counter: [UInt8]?) -> [UInt8] {
        let tag: UInt8 = (uid == nil ? 0 : 0x87) | (counter == nil ? 0 : 0x40)
        var plain = [tag] + (uid ?? []) + (counter ?? [])
        plain += random.octets(16 - plain.count)
        let key = application.keys[Int(messaging.metaRead)].octets
        guard memory.usesLRP else { return (try? BlockCipher.aes.encrypt(plain, key: key)) ?? [] }
        let start = random.octets(8)
        var blocks = start
        return start + ((try? LRP(key: key).encrypt(plain, counter: &blocks)) ?? [])
    }

    private func encipher(
        _ plain: [UInt8], _ key: [UInt8], _ uid: [UInt8]?, _ counter: [UInt8]?, _ count: [UInt8]
    ) -> [UInt8] {
        if memory.usesLRP {
            guard let session = try? DESFireSessionKeys.dynamicMessagingLRP(key: key, uid: uid, counter: counter),
                let primitive = try? LRP(key: session, updateNumber: 1)
            else { return [] }
            var blocks = count + [0, 0, 0]
            return (try? primitive.encrypt(plain, counter: &blocks)) ?? []
        }
        guard let keys = try? DESFireSessionKeys.dynamicMessaging(key: key, uid: uid, counter: counter) else { return [] }
        let vector = try? BlockCipher.aes.encrypt(count + [UInt8](repeating: 0, count: 13), key: keys.encryption)
        return (try? BlockCipher.aes.encrypt(plain, key: keys.encryption, iv: vector)) ?? []
    }

    private func mac(_ input: [UInt8], _ key: [UInt8], _ uid: [UInt8]?, _ counter: [UInt8]?) -> [UInt8] {
        if memory.usesLRP {
            let session = try? DESFireSessionKeys.dynamicMessagingLRP(key: key, uid: uid, counter: counter)
            return session.flatMap { try? LRP(key: $0) }?.authenticate(input) ?? []
        }
        let keys = try? DESFireSessionKeys.dynamicMessaging(key: key, uid: uid, counter: counter)
        return keys.flatMap { try? CMAC.authenticate(input, key: $0.authentication) } ?? []
    }

    /// GetFileCounters: SDMReadCtr and two reserved octets.
    func fileCounters(_ number: UInt8) throws(DESFireRefusal) -> [UInt8] {
        guard memory.model == .ntag424 else { throw .illegalCommand }
        guard let messaging = try file(number).messaging else { throw .permissionDenied }
        switch messaging.counterRead {
        case 0x0E: break
        case 0x0F: throw .permissionDenied
        case let key: guard channel != nil, keyInUse == key else { throw .authentication }
        }
        return littleEndian(Int(messaging.counter), 3) + [0, 0]
    }

    /// The commands that NTAG 424 DNA has of DESFire's.
    func requireNTAG(_ code: UInt8) throws(DESFireRefusal) {
        let known: Set<UInt8> = [0x60, 0x51, 0x3C, 0x5C, 0x64, 0xC4, 0xF5, 0x5F, 0xF6, 0xAD, 0x8D]
        guard known.contains(code) else { throw .illegalCommand }
        if code == 0x51 || code == 0x64 || code == 0x5C { guard channel != nil else { throw .authentication } }
    }
}
