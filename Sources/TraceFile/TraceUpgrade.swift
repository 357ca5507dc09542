// SPDX-License-Identifier: MIT

/// Turns a trace of one format into one of the next, a step a format, so that an old file is read as if it had been written now.
///
/// A step stays as it was written: the format before it does not change any more, and neither does what came after.
public struct TraceUpgrade: Sendable {
    /// The format that traces are written in.
    public static let current = 1

    /// The steps there are. Format 1 is the first, so that there is none yet.
    public static let standard = TraceUpgrade(current: current, steps: [:])

    private let current: Int
    private let steps: [Int: @Sendable (inout Trace) -> Void]

    /// - Parameter steps: each by the format that it starts from, to the next number; a step need not set the trace's number.
    init(current: Int, steps: [Int: @Sendable (inout Trace) -> Void]) {
        self.current = current
        self.steps = steps
    }

    /// Whether a trace is of a later format, whose rows may mean what this version does not know.
    public func isLater(_ trace: Trace) -> Bool { trace.header.format.map { $0 > current } ?? false }

    /// Brings a trace to the current format.
    ///
    /// A capture of another program, which has no format, and a trace of a later one stay as they are.
    /// - Returns: the formats that were left behind, in order.
    @discardableResult
    public func apply(to trace: inout Trace) -> [Int] {
        var passed: [Int] = []
        while let format = trace.header.format, format < current, let step = steps[format] {
            step(&trace)
            trace.header.format = format + 1
            passed.append(format)
        }
        return passed
    }
}
