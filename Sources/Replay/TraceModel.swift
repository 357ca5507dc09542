// SPDX-License-Identifier: MIT

import Octets
import TagTransport

/// A card as far as a trace shows one: files with what was read of them, answers in their context, rights and refusals.
///
/// What the trace shows is answered as it stands there. Beyond it, the answer is what ISO/IEC 7816-4 expects of a card that has what
/// was seen and nothing else, and is marked as guessed. Messages under secure messaging are beyond it: a model has no keys.
struct TraceModel: Sendable {
    struct Answer: Sendable {
        var octets: [UInt8]
        var isGuessed: Bool
    }

    private struct Place: Hashable, Sendable {
        var context: CardContext
        var command: [UInt8]
    }

    /// What was read of one file.
    private struct File: Sendable {
        var octets: [UInt8] = []
        /// Which octets were read.
        var known = RangeList()
        /// Its length, once a read met its end.
        var end: Int?
        /// The last refusal of a read, by what was proven then.
        var refusals: [CardContext: UInt16] = [:]
    }

    private var files: [CardContext: File] = [:]
    private var answers: [Place: [[UInt8]]] = [:]
    /// The same without Le, for a command that asks for another length.
    private var bodies: [Place: [UInt8]] = [:]
    private var selections: [[UInt8]: [UInt8]] = [:]
    private var instructions: Set<UInt8> = []
    private var classes: Set<UInt8> = []
    private var known: CardContext.Files = []
    /// The least length that the card refused to give, and how: 6700, or 6Cxx.
    private var longest: (most: Int, status: UInt16)?

    private var now = CardContext()
    private var given: [Place: Int] = [:]

    init() {}

    /// - Parameter exchanges: in plain, in order; nil stands for a reset.
    init(_ exchanges: [(command: [UInt8], response: [UInt8])?]) {
        let all = exchanges.compactMap { $0 }
        known = CardContext.files(all.map { ($0.command, Self.status(of: $0.response)) })
        var context = CardContext()
        var mostRead = 0
        for exchange in exchanges {
            guard let (command, response) = exchange, let status = Self.status(of: response) else {
                context.reset()
                continue
            }
            let relevant = context.relevant(to: command)
            let place = Place(context: relevant, command: command)
            answers[place, default: []].append(response)
            if let parsed = try? CommandAPDU(bytes: command) {
                instructions.insert(parsed.ins)
                classes.insert(parsed.cla)
                bodies[Place(context: relevant, command: Self.withoutLe(parsed))] = response
                if parsed.ins == 0xA4, CardContext.isSuccess(status) { selections[Self.selection(parsed)] = response }
                if parsed.ins == 0xB0 {
                    read(parsed, response, status, context)
                    if CardContext.isSuccess(status) { mostRead = max(mostRead, response.count - 2) }
                    if status == 0x6700 || status >> 8 == 0x6C, let ne = parsed.ne, ne < longest?.most ?? .max {
                        longest = (ne, status)
                    }
                }
            }
            context.take(command, status: status, files: known)
        }
        if let longest, longest.most <= mostRead { self.longest = nil }
    }

    private mutating func read(_ command: CommandAPDU, _ response: [UInt8], _ status: UInt16, _ context: CardContext) {
        let (file, offset) = target(command, context)
        var image = files[file] ?? File()
        defer { files[file] = image }
        let data = response.dropLast(2)
        guard CardContext.isSuccess(status), offset <= 0x7FFF else {
            image.refusals[context.proven] = status
            if status == 0x6B00 { image.end = min(image.end ?? offset, offset) }
            return
        }
        if image.octets.count < offset + data.count {
            image.octets += [UInt8](repeating: 0, count: offset + data.count - image.octets.count)
        }
        image.octets.replaceSubrange(offset..<offset + data.count, with: data)
        image.known.insert(offset..<offset + data.count)
        if let ne = command.ne, data.count < ne, status >> 8 != 0x61 { image.end = offset + data.count }
    }

    /// The file that a READ BINARY reads, and where.
    private func target(_ command: CommandAPDU, _ context: CardContext) -> (CardContext, Int) {
        guard command.p1 & 0x80 != 0 else { return (context.place, Int(command.p1) << 8 | Int(command.p2)) }
        return (context.place(short: command.p1 & 0x1F), Int(command.p2))
    }

    // MARK: - The card

    mutating func powerOn() { now.reset() }

    /// Takes in a command that was answered from elsewhere.
    mutating func follow(_ command: [UInt8], status: UInt16?) { now.take(command, status: status, files: known) }

    mutating func answer(_ command: [UInt8]) -> Answer {
        let answer = find(command)
        now.take(command, status: Self.status(of: answer.octets), files: known)
        return answer
    }

    private mutating func find(_ command: [UInt8]) -> Answer {
        let relevant = now.relevant(to: command)
        let place = Place(context: relevant, command: command)
        if let recorded = answers[place] {
            // What was asked several times is answered so again, and the last answer stands.
            let turn = given[place, default: 0]
            given[place] = turn + 1
            return Answer(
                octets: recorded[min(turn, recorded.count - 1)], isGuessed: turn >= recorded.count && recorded.count > 1)
        }
        guard let parsed = try? CommandAPDU(bytes: command) else { return guess([], 0x6700) }
        if parsed.cla == 0x90 { return guess([], desfire(parsed)) }
        if isProtected(parsed.cla) { return guess([], 0x6882) }
        if !classes.isEmpty, parsed.cla != 0, !classes.contains(parsed.cla) { return guess([], 0x6E00) }
        if let same = bodies[Place(context: relevant, command: Self.withoutLe(parsed))], parsed.ins != 0xB0 {
            return guess(Array(same.dropLast(2).prefix(parsed.ne ?? 0)), Self.status(of: same) ?? 0x9000)
        }
        switch parsed.ins {
        case 0xA4: return select(parsed)
        case 0xB0: return readBinary(parsed)
        case 0xB2: return guess([], 0x6A83)
        case 0xCA, 0xCB: return guess([], 0x6A88)
        case 0x20: return guess([], instructions.contains(0x20) ? 0x6300 : 0x6A88)
        case 0x82, 0x86, 0x88: return guess([], instructions.contains(parsed.ins) ? 0x6300 : 0x6D00)
        default: return guess([], instructions.contains(parsed.ins) ? 0x6A86 : 0x6D00)
        }
    }

    private func select(_ command: CommandAPDU) -> Answer {
        guard let known = selections[Self.selection(command)] else { return guess([], 0x6A82) }
        return guess(Array(known.dropLast(2).prefix(command.ne ?? 0)), 0x9000)
    }

    private func readBinary(_ command: CommandAPDU) -> Answer {
        let (place, offset) = target(command, now)
        guard let file = files[place] else { return guess([], 0x6986) }
        if let refusal = file.refusals[now.proven], file.octets.isEmpty || refusal == 0x6982 { return guess([], refusal) }
        guard let ne = command.ne else { return guess([], 0x6700) }
        if let longest, ne >= longest.most { return guess([], longest.status) }
        let end = file.end ?? file.octets.count
        guard offset < end else { return guess([], 0x6B00) }
        let there = file.known.run(from: offset)
        let wanted = min(ne, end - offset)
        guard there > 0 else { return guess([], 0x6B00) }
        let data = Array(file.octets[offset..<offset + min(wanted, there)])
        return guess(data, data.count < ne && !(ne == 256 || ne == 65_536) ? 0x6282 : 0x9000)
    }

    private func desfire(_ command: CommandAPDU) -> UInt16 {
        switch command.ins {
        case 0x5A: 0x91A0
        case 0xBD, 0xBB, 0x6C, 0xF5: 0x91F0
        default: instructions.contains(command.ins) ? 0x919D : 0x911C
        }
    }

    private func guess(_ data: [UInt8], _ status: UInt16) -> Answer {
        Answer(octets: data + StatusBytes(status).octets, isGuessed: true)
    }

    private func isProtected(_ cla: UInt8) -> Bool {
        (cla & 0xE0 == 0 && cla & 0x0C != 0) || (cla & 0xC0 == 0x40 && cla & 0x20 != 0)
    }

    /// What is selected, whatever is to come back.
    private static func selection(_ command: CommandAPDU) -> [UInt8] { [command.p1] + (command.data.map { [UInt8]($0) } ?? []) }

    private static func withoutLe(_ command: CommandAPDU) -> [UInt8] {
        [command.cla, command.ins, command.p1, command.p2] + (command.data.map { [UInt8]($0) } ?? [])
    }

    private static func status(of response: [UInt8]) -> UInt16? {
        guard response.count >= 2 else { return nil }
        return UInt16(response[response.count - 2]) << 8 | UInt16(response[response.count - 1])
    }
}

/// Ranges of octets that were read.
struct RangeList: Sendable {
    private var ranges: [Range<Int>] = []

    mutating func insert(_ new: Range<Int>) {
        guard !new.isEmpty else { return }
        var joined = new
        ranges.removeAll { old in
            guard old.lowerBound <= joined.upperBound, joined.lowerBound <= old.upperBound else { return false }
            joined = min(old.lowerBound, joined.lowerBound)..<max(old.upperBound, joined.upperBound)
            return true
        }
        ranges.append(joined)
    }

    /// How many octets are known from `start` on.
    func run(from start: Int) -> Int { ranges.first { $0.contains(start) }.map { $0.upperBound - start } ?? 0 }
}
