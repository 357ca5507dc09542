// SPDX-License-Identifier: MIT

public import CardSockets
import Synchronization
import TagTransport

/// What a kind of virtual card is: a state machine that gets commands and gives answers, and knows nothing of links, power or faults.
///
/// It is a value, so that a copy of it is the same card at the same point of its life.
public protocol CardMachine: Sendable {
    /// The answer to reset (ISO/IEC 7816-3 8.2).
    var atr: [UInt8] { get }

    /// Whether it answers frames that are no command APDUs, as DESFire does.
    var answersFrames: Bool { get }

    /// Puts the volatile state back to what it is after power-on. What is kept in memory stays.
    mutating func powerOn()

    /// Answers one command. Any octets may come; at least a status word goes back.
    mutating func answer(_ command: [UInt8]) -> [UInt8]
}

extension CardMachine {
    public var answersFrames: Bool { false }
}

/// A virtual card: a machine, its faults, and the power that it gets over a link.
///
/// It may be shared: calls from several threads are answered one after another.
public final class VirtualCard: CardEnd, Sendable {
    /// The kind's name as the catalogue has it, for instance `passport`.
    public let kind: String
    /// The UID that a contactless card shows; empty for a contact card.
    public let identifier: [UInt8]
    /// `T=1` for a contact card, `T=CL` for a contactless one.
    public var protocolName: String { identifier.isEmpty ? "T=1" : "T=CL" }
    public let atr: [UInt8]
    /// Whether the card answers frames that are no command APDUs.
    public let answersFrames: Bool
    /// The card's own secret keys, for a recording.
    package let keys: [(name: String, octets: [UInt8])]

    private let state: Mutex<State>

    /// A card without power.
    public init(kind: String, machine: any CardMachine, identifier: [UInt8] = [], faults: FaultPlan = FaultPlan()) {
        self.kind = kind
        self.identifier = identifier
        atr = machine.atr
        answersFrames = machine.answersFrames
        keys = (machine as? any CardKeyHolding)?.cardKeys ?? []
        state = Mutex(State(machine: machine, faults: faults))
    }

    /// Power comes on, or the card is reset; the count of commands starts again. A card that was removed is put back.
    public func powerOn() {
        state.withLock { $0.powerOn() }
    }

    public func powerOff() {
        state.withLock { $0.power = .off }
    }

    public func exchange(_ command: [UInt8]) -> CardAnswer {
        state.withLock { $0.exchange(command) }
    }
}

extension VirtualCard {
    private enum Power {
        case off
        case on
        case removed
    }

    private struct State: Sendable {
        var machine: any CardMachine
        let faults: FaultPlan
        var power = Power.off
        /// Commands since power-on.
        var count = 0
        /// What a `61` fault holds back: data that is left, then the status word.
        var heldBack: ArraySlice<UInt8> = []

        init(machine: any CardMachine, faults: FaultPlan) {
            self.machine = machine
            self.faults = faults
        }

        mutating func powerOn() {
            power = .on
            count = 0
            heldBack = []
            machine.powerOn()
        }

        mutating func exchange(_ command: [UInt8]) -> CardAnswer {
            switch power {
            case .off: return .silence
            case .removed: return .removed
            case .on: break
            }
            count &+= 1
            guard let fault = faults[count] else { return .response(run(command)) }
            return answer(command, with: fault)
        }

        private mutating func answer(_ command: [UInt8], with fault: CardFault) -> CardAnswer {
            switch fault {
            case .remove:
                power = .removed
                return .removed
            case .mute:
                return .silence
            case .reset:
                heldBack = []
                machine.powerOn()
                return .response(run(command))
            case .short:
                let answer = run(command)
                return .response(Array(answer.prefix(answer.count / 2)))
            case .flip:
                var answer = run(command)
                if answer.count > 2 { answer[answer.count - 3] ^= 0x01 }
                return .response(answer)
            case .status(let word):
                heldBack = []
                return .response(StatusWord(rawValue: word).octets)
            case .wrongLe:
                // A copy tells the length; the card itself has not seen the command, so that its counters stand.
                var copy = self
                let length = copy.run(command).count - 2
                return .response((1...256).contains(length) ? StatusWord.rightLength(length).octets : run(command))
            case .getResponse:
                let answer = run(command)
                guard answer.count > 2 else { return .response(answer) }
                heldBack = answer[...]
                return .response(StatusWord.moreAvailable(answer.count - 2).octets)
            }
        }

        private mutating func run(_ command: [UInt8]) -> [UInt8] {
            guard !heldBack.isEmpty else { return machine.answer(command) }
            if command.count >= 4, command[0] & 0xFC == 0, command[1] == 0xC0 { return getResponse(command) }
            heldBack = []
            return machine.answer(command)
        }

        /// GET RESPONSE (ISO/IEC 7816-4 11.10.1): as many octets as Le says, then the status word or `61xx`.
        private mutating func getResponse(_ command: [UInt8]) -> [UInt8] {
            guard let command = try? CardCommand(parsing: command), let ne = command.ne, command.data.isEmpty else {
                return StatusWord.wrongLength.octets
            }
            let left = heldBack.count - 2
            if ne >= left {
                defer { heldBack = [] }
                return Array(heldBack)
            }
            let piece = heldBack.prefix(ne)
            heldBack = heldBack.dropFirst(ne)
            return piece + StatusWord.moreAvailable(left - ne).octets
        }
    }
}
