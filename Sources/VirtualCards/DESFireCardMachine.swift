// SPDX-License-Identifier: MIT

import CardCrypto

/// A DESFire card or an NTAG 424 DNA: native commands, bare or inside ISO/IEC 7816-4 ones, and the ISO commands beside them.
///
/// Every refusal ends the session, as it does in real cards, and drops what a transaction has not committed only when the selection
/// or the power goes.
struct DESFireCardMachine: CardMachine {
    let atr: [UInt8]
    var memory: DESFireMemory
    var random: CardRandom
    /// How many authentications are put off after the third failure and each further one.
    var delay = 1

    // What goes with the power.
    var selected = Selection.card
    var channel: DESFireCardChannel?
    var keyInUse: UInt8 = 0
    /// Copies of files that the transaction changed.
    var shadows: [UInt8: DESFireContent] = [:]
    /// TMI: what the transaction MAC is made over.
    var transactionInput: [UInt8] = []
    var pending = Pending.none
    var isoFile: UInt8?
    /// The card's challenge of ISO GET CHALLENGE, and the reader's number once EXTERNAL AUTHENTICATE was right.
    var isoChallenge: [UInt8] = []
    var isoReader: (key: UInt8, random: [UInt8])?
    var image: NTAGImage?

    enum Selection: Sendable, Equatable {
        case card
        /// An index into the applications.
        case application(Int)
    }

    /// A chain of frames, or of an authentication, that is not at its end.
    enum Pending: Sendable {
        case none
        case authenticating(DESFireCardHandshake)
        /// The parameters so far and how many there will be.
        case receiving(code: UInt8, parameters: [UInt8], length: Int)
        case sending(ArraySlice<UInt8>)
        /// GetDFNames and GetVersion come in frames of their own.
        case sendingFrames(ArraySlice<[UInt8]>)
    }

    init(memory: DESFireMemory, random: CardRandom) {
        self.memory = memory
        self.random = random
        // ISO/IEC 14443-4 over PC/SC: a card with the historical octet 80 (PC/SC part 3, 3.1.3.2.3.1).
        atr = [0x3B, 0x81, 0x80, 0x01, 0x80, 0x80]
    }

    var answersFrames: Bool { memory.model != .ntag424 }

    mutating func powerOn() {
        selected = memory.model == .ntag424 ? .application(0) : .card
        endSession()
        shadows = [:]
        transactionInput = []
        pending = .none
        isoFile = nil
        image = nil
    }

    mutating func answer(_ command: [UInt8]) -> [UInt8] {
        guard let first = command.first else { return StatusWord.wrongLength.octets }
        switch first {
        case 0x00: return answerISO(command)
        case 0x90: return answerWrapped(command)
        default:
            if memory.model == .ntag424 { return StatusWord.classNotSupported.octets }
            let (status, data) = native(first, Array(command.dropFirst()), pieces: 59)
            return [status] + data
        }
    }

    private mutating func answerWrapped(_ octets: [UInt8]) -> [UInt8] {
        guard let command = try? CardCommand(parsing: octets) else { return [0x91, DESFireRefusal.length.rawValue] }
        guard command.p1 == 0, command.p2 == 0 else { return [0x91, DESFireRefusal.parameter.rawValue] }
        let (status, data) = native(command.ins, command.data, pieces: 59)
        // What does not fit Le cannot be sent; the card says so rather than cut an answer.
        if data.count > max(command.ne ?? 0, 256) { return [0x91, DESFireRefusal.length.rawValue] }
        return data + [0x91, status]
    }

    // MARK: - Frames

    /// Answers one frame.
    private mutating func native(_ code: UInt8, _ parameters: [UInt8], pieces: Int) -> (UInt8, [UInt8]) {
        do throws(DESFireRefusal) {
            let state = pending
            pending = .none
            if code == 0xAF { return try goOn(state, parameters) }
            if case .none = state {} else { throw DESFireRefusal.commandAborted }
            if let handshake = try begin(code, parameters) {
                let challenge = handshake.challenge
                pending = .authenticating(handshake)
                return (0xAF, challenge)
            }
            let length = try neededLength(code, parameters)
            if parameters.count < length {
                pending = .receiving(code: code, parameters: parameters, length: length)
                return (0xAF, [])
            }
            return try run(code, parameters)
        } catch {
            return (refuse(error), [])
        }
    }

    private mutating func goOn(_ state: Pending, _ parameters: [UInt8]) throws(DESFireRefusal) -> (UInt8, [UInt8]) {
        switch state {
        case .none: throw .illegalCommand
        case .authenticating(let handshake): return (0x00, try finish(handshake, parameters))
        case .receiving(let code, let before, let length):
            let all = before + parameters
            guard !parameters.isEmpty, all.count <= length else { throw .length }
            if all.count < length {
                pending = .receiving(code: code, parameters: all, length: length)
                return (0xAF, [])
            }
            return try run(code, all)
        case .sending(let rest):
            guard parameters.isEmpty else { throw .length }
            return send(rest)
        case .sendingFrames(let frames):
            guard parameters.isEmpty, let frame = frames.first else { throw .length }
            if frames.count > 1 { pending = .sendingFrames(frames.dropFirst()) }
            return (frames.count > 1 ? 0xAF : 0x00, frame)
        }
    }

    private mutating func send(_ data: ArraySlice<UInt8>) -> (UInt8, [UInt8]) {
        guard data.count > 59 else { return (0x00, Array(data)) }
        pending = .sending(data.dropFirst(59))
        return (0xAF, Array(data.prefix(59)))
    }

    private mutating func run(_ code: UInt8, _ parameters: [UInt8]) throws(DESFireRefusal) -> (UInt8, [UInt8]) {
        if code != 0xAD, code != 0xBD { image = nil }
        let command = try parse(code, parameters)
        if code == 0x60, channel == nil {
            // Three frames: hardware, software, production.
            let version = versionOctets
            pending = .sendingFrames([Array(version[7..<14]), Array(version[14...])])
            return (0xAF, Array(version[0..<7]))
        }
        if code == 0x6D {
            var frames = try dfNames()
            guard !frames.isEmpty else { return (0x00, []) }
            let first = frames.removeFirst()
            if !frames.isEmpty { pending = .sendingFrames(frames[...]) }
            return (frames.isEmpty ? 0x00 : 0xAF, first)
        }
        var data: [UInt8] = []
        let opened: (data: [UInt8], second: [UInt8])
        if channel != nil, code != 0x5A {
            opened = try openInChannel(command)
        } else {
            guard command.protection != .secret || code == 0x3C else { throw .authentication }
            opened = (command.body, [])
        }
        let outcome = try perform(command, opened.data, second: opened.second)
        data = outcome.data
        let status: UInt8 = code == 0x3C && memory.model == .ntag424 ? 0x90 : 0x00
        if outcome.endsSession {
            endSession()
        } else if channel != nil, code != 0x5A {
            data = channel?.seal(data, to: command, status: status) ?? []
        }
        // The codes of EV2 for ISO/IEC 14443-4 chaining answer in one piece, and so does NTAG 424 DNA.
        if [0xAD, 0xAB].contains(code) || memory.model == .ntag424 { return (status, data) }
        let (more, piece) = send(data[...])
        return (more == 0xAF ? 0xAF : status, piece)
    }

    private mutating func openInChannel(
        _ command: DESFireCardCommand
    ) throws(DESFireRefusal) -> (data: [UInt8], second: [UInt8]) {
        guard var open = channel else { return (command.body, []) }
        let result = try open.open(command)
        channel = open
        return result
    }

    private mutating func refuse(_ refusal: DESFireRefusal) -> UInt8 {
        endSession()
        return refusal.rawValue
    }

    mutating func endSession() {
        channel = nil
        isoReader = nil
        isoChallenge = []
    }

    var versionOctets: [UInt8] {
        // Batch 0, week 48 of 2026.
        memory.model.version + memory.uid + [0x00, 0x00, 0x00, 0x00, 0x00, 0x48, 0x26]
    }
}

extension DESFireCardMachine {
    // MARK: - The selection

    var application: DESFireApplication {
        get {
            switch selected {
            case .card: memory.card
            case .application(let index): memory.applications.indices.contains(index) ? memory.applications[index] : memory.card
            }
        }
        set {
            switch selected {
            case .card: memory.card = newValue
            case .application(let index):
                if memory.applications.indices.contains(index) { memory.applications[index] = newValue }
            }
        }
    }

    mutating func select(_ selection: Selection) {
        selected = selection
        endSession()
        shadows = [:]
        transactionInput = []
        isoFile = nil
        image = nil
    }

    var isMaster: Bool { channel != nil && keyInUse == 0 }
}
