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

    // What a program meets through PC/SC beyond the card itself. A card that knows nothing of its reader leaves them out.

    /// A program's command. The answer may be an error of the reader's.
    func transmit(_ command: [UInt8]) -> ReaderAnswer

    /// A program resets the card; the answer is the answer to reset, or none of it from a mute card.
    func reset() -> ReaderAnswer

    /// A program speaks to the reader itself (SCardControl).
    func control(code: UInt32, input: [UInt8]) -> ReaderAnswer

    /// A program asks for the card to be taken out (SCARD_EJECT_CARD). A reader without a motor switches its power off.
    func eject() -> ReaderAnswer

    /// Asked after each answer of a reader: the card's way out, when it leaves with this answer or has left; nil while it stays, or
    /// left for good.
    func departure() -> Departure?

    /// No program is there any more: the last context was released.
    ///
    /// - Returns: whether a card that was out is in the reader again.
    func programsLeft() -> Bool
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

/// What a program gets through PC/SC from a card or its reader.
public enum ReaderAnswer: Sendable, Equatable {
    case octets([UInt8])
    /// A code of PC/SC, for instance `0x80100016`; the card stays where it is.
    case failed(UInt32)
    /// The card is out of the reader; the program gets this code.
    case removed(UInt32)
}

/// A card that leaves its reader.
public struct Departure: Sendable, Equatable {
    /// When it comes back; nil when it does not.
    public var returnsAfter: Duration?

    public init(returnsAfter: Duration? = nil) { self.returnsAfter = returnsAfter }
}

extension CardEnd {
    /// What ``exchange(_:)`` gives. No answer at all is *not transacted*, as a reader says after its time is over.
    public func transmit(_ command: [UInt8]) -> ReaderAnswer {
        switch exchange(command) {
        case .response(let response): .octets(response)
        case .silence: .failed(ServiceCode.notTransacted)
        case .removed: .removed(ServiceCode.removedCard)
        }
    }

    public func reset() -> ReaderAnswer {
        powerOn()
        return .octets(atr)
    }

    public func control(code: UInt32, input: [UInt8]) -> ReaderAnswer { .failed(ServiceCode.unsupportedFeature) }

    public func eject() -> ReaderAnswer {
        powerOff()
        return .octets([])
    }

    public func departure() -> Departure? { nil }

    public func programsLeft() -> Bool { false }
}
