// SPDX-License-Identifier: MIT

extension ReplaySuite {
    /// How one trace of a suite went.
    public struct Result: Sendable {
        public enum Outcome: String, Sendable {
            case same, differs, blocked
            /// It differs, as `suite.txt` says.
            case failsAsExpected
            /// It is the same, though `suite.txt` says that it fails: the line is to go.
            case passesNow
            case skipped
            /// The file cannot be read.
            case unreadable
        }

        public var item: Item
        public var outcome: Outcome
        /// Nil when it was not replayed.
        public var report: ReplayReport?
        /// For an unreadable file what is wrong with it.
        public var problem: [String] = []

        public init(_ item: Item, _ attempt: Attempt) {
            self.item = item
            switch attempt {
            case .unreadable(let problem):
                outcome = .unreadable
                self.problem = problem
            case .report(let report):
                self.report = report
                let isExpected = if case .fails? = item.expectation { true } else { false }
                outcome =
                    switch report.verdict {
                    case .same: isExpected ? .passesNow : .same
                    case .differs: isExpected ? .failsAsExpected : .differs
                    case .blocked: .blocked
                    }
            }
        }

        init(skipped item: Item) {
            self.item = item
            outcome = .skipped
        }

        /// Whether everything is as expected.
        public var isFine: Bool { [.same, .failsAsExpected, .skipped].contains(outcome) }
    }

    /// What came of a trace.
    public enum Attempt: Sendable {
        case report(ReplayReport)
        case unreadable([String])
    }

    /// Replays every trace with the secrets that are inside or beside it.
    ///
    /// - Parameters:
    ///   - options: for all; a mode that `suite.txt` names holds where none is given here.
    ///   - jobs: how many at a time.
    public func run(options: ReplayOptions = ReplayOptions(), jobs: Int = 1, stopsAtFirst: Bool = false) async -> [Result] {
        await run(jobs: jobs, stopsAtFirst: stopsAtFirst) { item in
            var options = options
            options.mode = options.mode ?? item.mode
            do { return .report(await (try Replay(of: item.path, options: options)).run()) } catch {
                return .unreadable(["\(error)"])
            }
        }
    }

    /// Replays every trace by `attempt`.
    ///
    /// - Parameter onResult: told of each as it is finished, with the number of finished ones.
    /// - Returns: results in the order of the suite; after the first that is not fine none begins when `stopsAtFirst`.
    public func run(
        jobs: Int, stopsAtFirst: Bool, _ attempt: @escaping @Sendable (Item) async -> Attempt,
        onResult: (Result, Int) -> Void = { _, _ in }
    ) async -> [Result] {
        var results = [Result?](repeating: nil, count: items.count)
        var next = 0
        var finished = 0
        var isStopped = false
        await withTaskGroup(of: (Int, Result).self) { group in
            var running = 0
            while true {
                while !isStopped, running < max(1, jobs), next < items.count {
                    let (index, item) = (next, items[next])
                    next += 1
                    running += 1
                    group.addTask {
                        if case .skip? = item.expectation { return (index, Result(skipped: item)) }
                        return (index, Result(item, await attempt(item)))
                    }
                }
                guard let (index, result) = await group.next() else { break }
                running -= 1
                finished += 1
                results[index] = result
                onResult(result, finished)
                if stopsAtFirst, !result.isFine { isStopped = true }
            }
        }
        return results.compactMap { $0 }
    }
}
