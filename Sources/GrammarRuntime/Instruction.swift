// SPDX-License-Identifier: MIT

/// What one instruction does. Forwards it reads octets and writes spans; backwards it takes values and writes octets.
package enum Opcode: UInt8, Sendable, BitwiseCopyable {
    // Structure.
    /// A number of `a` octets (bit 7 of `a`: least significant first); node `b`.
    case uint
    /// A group of bit fields in `a` octets, most significant first; node `b`. Ends with `close`.
    case bits
    /// The next `a` bits of the group; node `b`.
    case bit
    /// Octets, their count on the stack; node `b`.
    case bytes
    /// Octets to the limit; node `b`.
    case rest
    /// A number that fills the limit; node `b`.
    case number
    /// A composite begins; node `b`.
    case begin
    case close
    /// A new limit, its length on the stack.
    case limit
    case endLimit
    /// Objects of tag table `b` to the limit.
    case tlv
    /// The end of what one tag holds.
    case endTag
    /// A repetition begins; `a` is 1 when its count is on the stack.
    case enter
    /// Leaves the repetition for `c` when nothing is left.
    case more
    /// Back to `c` when the last turn moved on.
    case again
    /// A list of alternatives begins; table `b`.
    case choose
    /// The alternative of node `b` was taken.
    case alternative
    /// Field `b` is there only when the number on the stack is not 0; else on to `c`.
    case when
    /// Slots `b` up to `b + c` are emptied.
    case clear
    /// The value of node `b` is what follows says, up to `c`; `a` is 1 when that is octets.
    case derive
    /// Ends `derive` of node `b`, check `c`.
    case same
    case test
    /// On to `c` unless `b` octets are left.
    case testRemaining
    /// On to `c` unless the next octet under mask `a` is `b`.
    case testPeek
    case jump
    case done

    // Numbers.
    case push
    case constant
    case slotNumber
    /// Whether the number in slot `b` is `c`.
    case slotIs
    case slotCount
    case has
    case remaining
    case peek
    case add, subtract, multiply, and, or, xor, shiftLeft, shiftRight
    case equal, unequal, less, lessEqual
    case not
    /// Whether session `b` is in state `c`.
    case inState

    // Octets.
    case literal
    case slotBytes
    case slotRaw
    /// From the first octet of slot `b` to the last of slot `c`.
    case slotRange
    /// The octets of the enclosing run before slot `b`.
    case before
    case variable
    case joined
    case concatenate
    case exclusive
    /// Octets `start..<end`, both on the number stack.
    case slice
    /// The number on the stack as `a` octets.
    case octets
    /// The octets on the stack as a number.
    case toNumber
    case countBytes
    case bytesEqual
    case pad
    case unpad
    /// Transform `b` with its arguments on the stack.
    case transform

    // Statements.
    /// On to `c`, with nothing known, when what check `b` follows from can not be known yet.
    case need
    case check
    /// Slot `b` is what the octets on the stack say: compared when reading, written when sealing. Check `c`.
    case match
    case note
    case set
    /// Counter `b` moves by `c`.
    case bump
    case open
    case yield
    case start
    case stop
    /// The octets of a command and its response, on the stack, are read as `b` says.
    case decode
}

/// One step of a program, eight octets.
package struct Instruction: Sendable, Equatable, BitwiseCopyable {
    package var op: Opcode
    package var a: UInt8
    package var b: UInt16
    package var c: Int32

    package init(_ op: Opcode, a: UInt8 = 0, b: Int = 0, c: Int = 0) {
        self.op = op
        self.a = a
        self.b = UInt16(truncatingIfNeeded: b)
        self.c = Int32(truncatingIfNeeded: c)
    }
}
