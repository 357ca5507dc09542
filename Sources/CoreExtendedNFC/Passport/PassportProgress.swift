// SPDX-License-Identifier: MIT

/// One step of a passport read, for whoever shows it.
public struct PassportProgress: Sendable, Equatable {
    public enum Stage: String, Sendable {
        /// EF.CardAccess, PACE, BAC.
        case access
        /// A file.
        case read
        /// The whole.
        case result
    }

    public enum State: String, Sendable {
        case running, done, failed
    }

    public let stage: Stage
    /// `BAC`, `EF.COM`, `DG1`; empty for the whole.
    public let subject: String
    public let state: State
    /// What came of it: `keys agreed`, `22 bytes`; empty while it runs.
    public let text: String
    /// Octets read so far, and the file's length once it is known.
    public let bytesDone: Int?
    public let bytesTotal: Int?
    /// Exchanges with the card since the step before ended.
    public let exchanges: Int

    /// The step as one line: `read  EF.COM, 22 bytes`.
    public var line: String {
        switch stage {
        case .access: "access  \(subject): \(text)"
        case .read: "read  \(subject), \(text)"
        case .result: "result  \(text)"
        }
    }

    /// Who looks at each step of the passport reads of the current task, beside the lines of `onProgress`.
    ///
    /// A structure around the function: a bare function as a task-local value crashes in optimised builds of Swift 6.3.
    package struct Observer: Sendable {
        let see: @Sendable (PassportProgress) -> Void

        package init(_ see: @escaping @Sendable (PassportProgress) -> Void) { self.see = see }
    }

    @TaskLocal package static var observer: Observer?
}

/// A count of bytes for people: `1,848 bytes`.
func bytesText(_ count: Int) -> String { "\(grouped(count)) \(count == 1 ? "byte" : "bytes")" }

/// A number with commas between groups of three digits.
func grouped(_ number: Int) -> String {
    var digits = Array(String(max(0, number)))
    var index = digits.count - 3
    while index > 0 {
        digits.insert(",", at: index)
        index -= 3
    }
    return String(digits)
}
