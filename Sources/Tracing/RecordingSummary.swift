// SPDX-License-Identifier: MIT

/// What a recording holds so far: what its last lines say.
public struct RecordingSummary: Sendable, Equatable {
    /// An exchange that the card answered with anything but success.
    public struct Refusal: Sendable, Equatable {
        public var exchange: UInt64
        public var instruction: UInt8
        public var status: UInt16
    }

    public var exchanges = 0
    public var rows = 0
    /// Octets of the trace on disk.
    public var byteCount: UInt64 = 0
    /// Octets of the side file on disk; nil when there is none.
    public var secretsByteCount: UInt64?
    /// Seconds from the first row to the last.
    public var seconds = 0.0
    public var errors = 0
    public var lastRefusal: Refusal?
    /// The last exchange that got no answer.
    public var lostExchange: UInt64?
    public var readerNames: [String] = []
}
