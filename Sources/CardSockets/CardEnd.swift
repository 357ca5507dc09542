// SPDX-License-Identifier: MIT

/// The card's end of a link: what a virtual reader slot, an in-process transport or a socket drives.
///
/// Calls come one at a time, from one thread.
public protocol CardEnd: AnyObject {
    /// The answer to reset (ISO/IEC 7816-3 8.2).
    var atr: [UInt8] { get }

    /// Power comes on, or the card is reset while it is on. Volatile state is as after power-on.
    func powerOn()

    /// Power goes off.
    func powerOff()

    /// Answers one command APDU.
    func exchange(_ command: [UInt8]) -> CardAnswer
}

/// What a card does with a command.
public enum CardAnswer: Sendable, Equatable {
    /// A response APDU, status word included.
    case response([UInt8])
    /// The card answers nothing at all, and stays where it is.
    case silence
    /// The card is taken out before it answers.
    case removed
}
