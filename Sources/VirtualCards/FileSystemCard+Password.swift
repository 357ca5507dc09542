// SPDX-License-Identifier: MIT

import CardCrypto

/// A PIN or an unblocking code with its retry counter.
struct Password: Sendable {
    private(set) var value: [UInt8]
    /// What the counter starts from.
    let tries: Int
    private(set) var left: Int
    var isVerified = false

    init(_ value: [UInt8], tries: Int) {
        self.value = value
        self.tries = tries
        left = tries
    }

    var isBlocked: Bool { left == 0 }
    var count: Int { value.count }

    /// - Throws: `6983` when blocked, `63Cx` when wrong; the counter is then one less.
    mutating func check(_ given: some Collection<UInt8>) throws(StatusWord) {
        guard !isBlocked else { throw .blocked }
        guard equalInConstantTime(Self.withoutFiller(given), value) else {
            left -= 1
            isVerified = false
            throw .triesLeft(left)
        }
        left = tries
    }

    mutating func change(to new: some Collection<UInt8>) throws(StatusWord) {
        let new = Self.withoutFiller(new)
        guard (4...8).contains(new.count) else { throw .wrongData }
        value = new
    }

    mutating func unblock() { left = tries }

    private static func withoutFiller(_ octets: some Collection<UInt8>) -> [UInt8] {
        var octets = Array(octets)
        while octets.last == 0xFF { octets.removeLast() }
        return octets
    }
}

extension FileSystemCard {
    /// VERIFY (ISO/IEC 7816-4 11.6.6). Without data it asks for the state; with P1 `FF` it takes the verification back.
    mutating func verify(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.p1 == 0 || command.p1 == 0xFF else { throw .wrongParameters }
        try Self.requireReference(command.p2)
        guard command.ne == nil || command.data.isEmpty, command.data.count <= 16 else { throw .wrongLength }
        if command.p1 == 0xFF {
            guard command.data.isEmpty else { throw .wrongLength }
            pin.isVerified = false
            return CardReply()
        }
        if command.data.isEmpty {
            if pin.isVerified { return CardReply() }
            throw pin.isBlocked ? .blocked : .triesLeft(pin.left)
        }
        try pin.check(command.data)
        pin.isVerified = true
        return CardReply()
    }

    /// CHANGE REFERENCE DATA (11.6.7): the old PIN, then the new one. The old one has its present length, or eight octets with filler.
    mutating func changeReferenceData(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.p1 == 0 else { throw .wrongParameters }
        try Self.requireReference(command.p2)
        guard command.ne == nil, (8...16).contains(command.data.count) else { throw .wrongLength }
        let split = command.data.count == 16 ? 8 : min(pin.count, command.data.count)
        try pin.check(command.data[..<split])
        try pin.change(to: command.data[split...])
        return CardReply()
    }

    /// RESET RETRY COUNTER (11.6.10): P1 `00` unblocking code and new PIN, `01` unblocking code alone.
    mutating func resetRetryCounter(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.p1 <= 1 else { throw .wrongParameters }
        try Self.requireReference(command.p2)
        guard command.ne == nil, (4...16).contains(command.data.count) else { throw .wrongLength }
        let split = command.p1 == 1 ? command.data.count : min(unblocking.count, command.data.count)
        if command.p1 == 0, split == command.data.count { throw .wrongLength }
        try unblocking.check(command.data[..<split])
        if command.p1 == 0 { try pin.change(to: command.data[split...]) }
        pin.unblock()
        pin.isVerified = false
        return CardReply()
    }

    private static func requireReference(_ p2: UInt8) throws(StatusWord) {
        guard p2 == 0x00 || p2 == 0x01 || p2 == 0x81 else { throw .referencedDataNotFound }
    }
}
