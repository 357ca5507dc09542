// SPDX-License-Identifier: MIT

/// Why a transport has no answer: the one error that every ``NFCTagTransport`` throws. Equality is on the case and code.
///
/// A reader's own return code stays with it, so that a recorded failure is replayed as it was.
public struct TransportError: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Case: String, Sendable, CaseIterable {
        /// The card left the field or the slot, or stopped answering.
        case tagConnectionLost
        /// The card was reset by another program.
        case tagReset
        /// No answer in the time allowed.
        case timeout
        /// The reader was unplugged or is not there.
        case readerUnavailable
        /// The service between program and reader is not there.
        case serviceUnavailable
        /// Another program holds the card.
        case sharingViolation
        /// The call was cancelled.
        case cancelled
        /// This transport cannot do that.
        case unsupportedOperation
        /// What came back is not a response.
        case malformedResponse
        /// Readers may not be used here.
        case readersForbidden
        /// Any other failure of the reader.
        case readerFailure
    }

    public let `case`: Case
    /// The reader service's own return code (PC/SC: `80100069`), where there is one.
    public let code: UInt32?
    /// What was being done and what is known, for people.
    public let detail: String

    public init(_ case: Case, code: UInt32? = nil, detail: String = "") {
        self.case = `case`
        self.code = code
        self.detail = detail
    }

    public static func unsupported(_ operation: String) -> TransportError {
        TransportError(.unsupportedOperation, detail: operation)
    }

    public static func == (left: Self, right: Self) -> Bool { left.case == right.case && left.code == right.code }

    public var description: String {
        detail.isEmpty ? self.case.rawValue : "\(self.case.rawValue): \(detail)"
    }
}
