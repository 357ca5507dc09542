// SPDX-License-Identifier: MIT

import Synchronization

/// The thread on which a reader's card is asked, so that a slow card delays nobody but those who want it.
final class ReaderWorker: @unchecked Sendable {
    enum Order: Sendable {
        case work(ServiceMachine.Work)
        case programsLeft
        case end
    }

    struct Result: Sendable {
        var answer: ReaderAnswer
        var atr: [UInt8]
        var departure: Departure?
    }

    /// Touched by the worker's thread only.
    private let card: any CardEnd
    private let identifier: [UInt8]?
    private let onDone: @Sendable (Result) -> Void
    private let onReturn: @Sendable () -> Void
    private let orders = Mutex<[Order]>([])
    private let bell = Bell()
    private let ended = Bell()

    /// - Parameters:
    ///   - identifier: what the reader itself answers to `FF CA 00 00`; nil leaves that to the card.
    ///   - onDone: called on the worker's thread after each work.
    ///   - onReturn: called on it when the card is back in the reader since no program is there any more.
    init(
        card: sending any CardEnd, identifier: [UInt8]?, onDone: @escaping @Sendable (Result) -> Void,
        onReturn: @escaping @Sendable () -> Void
    ) {
        self.card = card
        self.identifier = identifier
        self.onDone = onDone
        self.onReturn = onReturn
    }

    func start() -> Bool { startThread { [self] in run() } }

    func post(_ order: Order) {
        orders.withLock { $0.append(order) }
        bell.ring()
    }

    /// Ends the thread after what it is doing, and waits for it.
    func stop() {
        post(.end)
        ended.wait(atMost: nil)
    }

    private func run() {
        while true {
            bell.wait(atMost: nil)
            let taken = orders.withLock { orders in
                defer { orders = [] }
                return orders
            }
            for order in taken {
                switch order {
                case .work(let work):
                    let answer = answer(work)
                    onDone(Result(answer: answer, atr: card.atr, departure: card.departure()))
                case .programsLeft: if card.programsLeft() { onReturn() }
                case .end:
                    card.powerOff()
                    ended.ring()
                    return
                }
            }
        }
    }

    private func answer(_ work: ServiceMachine.Work) -> ReaderAnswer {
        switch work {
        case .powerOn:
            card.powerOn()
            return .octets(card.atr)
        case .powerOff:
            card.powerOff()
            return .octets([])
        case .reset: return card.reset()
        case .eject: return card.eject()
        case .control(let code, let input): return card.control(code: code, input: input)
        case .transmit(let command):
            if let identifier, command.starts(with: [0xFF, 0xCA, 0x00, 0x00]) { return .octets(identifier + [0x90, 0x00]) }
            return card.transmit(command)
        }
    }
}
