// SPDX-License-Identifier: MIT

/// A reader as the service keeps it: the card in it, who shares it, who holds its lock.
struct ServiceReaderState: Sendable {
    enum Card: Sendable, Equatable {
        case absent
        case powered
        /// Without power, since nobody used it; a connect powers it. Programs see no difference.
        case resting
        /// A program took its power away.
        case unpowered
        /// It gives no answer to reset.
        case mute
    }

    let name: [UInt8]
    var card = Card.absent
    var atr: [UInt8] = []
    /// Counts insertions and removals.
    var events: UInt16 = 0
    /// Handles on it; -1 for an exclusive one.
    var sharing: Int32 = 0
    /// The handle that holds the lock; 0 for none.
    var owner: UInt32 = 0
    var lockCount = 0
    /// The protocol in force; 0 until the first connect after power-on or a reset.
    var inForce: UInt32 = 0
    /// What the card is doing now.
    var job: ServiceMachine.Job?
    /// A reset that waits for the job at hand to end: its lock's owner went away.
    var owesReset = false
    /// The card came back while the reader was at work.
    var owesInsertion = false

    init(name: String) { self.name = Array(name.utf8.prefix(ServiceLimit.name - 1)) }

    var isPresent: Bool { card != .absent }

    func isLocked(against handle: UInt32) -> Bool { owner != 0 && owner != handle }

    /// Takes one level of the lock away.
    mutating func unlock() {
        lockCount -= 1
        if lockCount <= 0 { dropLock() }
    }

    mutating func dropLock() {
        owner = 0
        lockCount = 0
    }

    /// The entry of the reader table: READER_STATE.
    var entry: [UInt8] {
        var octets = [UInt8](repeating: 0, count: ServiceLimit.entry)
        octets.replaceSubrange(0..<name.count, with: name)
        let atr = self.atr.prefix(ServiceLimit.atr)
        octets.replaceSubrange(140..<140 + atr.count, with: atr)
        var entry = ServiceStruct(octets)
        entry[128] = UInt32(events)
        entry[132] = stateBits
        entry[136] = UInt32(bitPattern: sharing)
        entry[176] = UInt32(atr.count)
        entry[180] = inForce
        return entry.octets
    }

    /// Absent 2, present 4, swallowed 8, powered 10, negotiable 20.
    private var stateBits: UInt32 {
        switch card {
        case .absent: 0x02
        case .powered, .resting: 0x34
        case .unpowered: 0x04
        case .mute: 0x0C
        }
    }

    /// An unused entry of a table of fixed size: zeros, and *not initialised* as the length of the answer to reset.
    static let unusedEntry: [UInt8] = {
        var entry = ServiceStruct([UInt8](repeating: 0, count: ServiceLimit.entry))
        entry[176] = UInt32(ServiceLimit.atr) + 1
        return entry.octets
    }()
}
