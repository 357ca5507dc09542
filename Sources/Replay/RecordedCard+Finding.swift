// SPDX-License-Identifier: MIT

/// Where a command of the run stands among the recorded ones when these may come in any order.
struct LooseOrder: Sendable {
    /// What each step met when it was recorded.
    private let contexts: [CardContext]
    private let files: CardContext.Files
    /// Steps by their command as it is compared.
    private let places: [[UInt8]: [Int]]
    private var now = CardContext()

    init(_ steps: [RecordedSession.Step], _ matching: any Matching) {
        let commands = steps.indices.map { matching.recorded($0) }
        files = CardContext.files(
            zip(steps, commands).compactMap { step, command in command.map { ($0, step.answer?.status) } })
        var context = CardContext()
        var contexts: [CardContext] = []
        var places: [[UInt8]: [Int]] = [:]
        for (index, step) in steps.enumerated() {
            contexts.append(context.relevant(to: commands[index] ?? []))
            if let command = commands[index] {
                places[command, default: []].append(index)
                context.take(command, status: step.answer?.status, files: files)
            } else if case .reset = step {
                context.reset()
            }
        }
        self.contexts = contexts
        self.places = places
    }

    /// The nearest step that is free, has an equal command, and met what this one meets.
    func place(of command: OpenCommand, near next: Int, isFree: (Int) -> Bool, isEqual: (Int) -> Bool) -> Int? {
        // What goes on with the exchange before it has its place behind that alone.
        guard !Self.goesOn(command.plain) else { return nil }
        let known = places[command.plain] ?? []
        let now = now.relevant(to: command.plain)
        func nearest(_ candidates: some Sequence<Int>) -> Int? {
            candidates.filter { isFree($0) && contexts[$0] == now && isEqual($0) }.min {
                (abs($0 - next), $0 < next ? 1 : 0) < (abs($1 - next), $1 < next ? 1 : 0)
            }
        }
        return nearest(known) ?? nearest(contexts.indices)
    }

    mutating func take(_ command: OpenCommand, status: UInt16?) { now.take(command.plain, status: status, files: files) }
    mutating func reset() { now.reset() }

    /// GET RESPONSE, and the further frames of DESFire.
    private static func goesOn(_ command: [UInt8]) -> Bool {
        guard command.count >= 4 else { return false }
        return command[1] == 0xC0 || (command[0] == 0x90 && command[1] == 0xAF)
    }
}

/// How much two commands are alike.
enum Likeness {
    /// Higher is more alike: the same instruction counts more than anything, then parameters, length, and octets from the front.
    static func between(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var likeness = 0
        let weights = [200, 1000, 100, 100]
        for index in 0..<min(4, left.count, right.count) where left[index] == right[index] { likeness += weights[index] }
        if left.count == right.count { likeness += 50 }
        return likeness + min(49, zip(left.dropFirst(4), right.dropFirst(4)).prefix { $0 == $1 }.count)
    }
}
