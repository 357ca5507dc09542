// SPDX-License-Identifier: MIT

/// Where a file stops being readable. Everything before that place was read.
public struct TraceDamage: Sendable, Equatable, CustomStringConvertible {
    public enum Kind: Sendable, Equatable {
        /// The file ends inside its last block, and what is there of it is sound: a recorder was killed, or a copy broke off.
        case cutShort
        /// What the block says cannot be.
        case damaged
        /// The system could not read on. `errno` is its reason.
        case unreadable(errno: Int32)
    }

    public var kind: Kind
    /// The number of the block at fault in the file, from 1.
    public var block: Int
    /// The offset in octets at which the block begins, in what a compressed file holds.
    public var offset: UInt64
    /// The length that the block says it has; nil when not even that is there.
    public var said: UInt64?
    /// How many octets there are from ``offset`` to the end of the file; nil where it was not read to its end.
    public var present: UInt64?
    /// The rows before it.
    public var rows: Int
    /// What is wrong, for people.
    public var detail: String
    /// What the file is made of: `block`, in an imported file `record`.
    public var unit: String

    public init(
        kind: Kind, block: Int, offset: UInt64, said: UInt64? = nil, present: UInt64? = nil, rows: Int, detail: String,
        unit: String = "block"
    ) {
        self.kind = kind
        self.block = block
        self.offset = offset
        self.said = said
        self.present = present
        self.rows = rows
        self.detail = detail
        self.unit = unit
    }

    /// `cut short in block 218, at byte 18,204: the block says 96 bytes, 41 are there`.
    public var description: String {
        "\(verdict) in \(unit) \(grouped(UInt64(clamping: block))), at byte \(grouped(offset)): \(detail)"
    }

    private var verdict: String {
        switch kind {
        case .cutShort: "cut short"
        case .damaged: "damaged"
        case .unreadable: "unreadable"
        }
    }
}
