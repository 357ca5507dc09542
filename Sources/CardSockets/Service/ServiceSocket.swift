// SPDX-License-Identifier: MIT

import Glibc
import Synchronization

/// Cards behind a socket that speaks pcsc-lite's client protocol: to a program that finds its path in `PCSCLITE_CSOCK_NAME` it is
/// the reader service, with these readers and no others.
///
/// One thread serves all clients; each card has a thread of its own. The socket's file is of mode 0600 and goes away at the end.
public final class ServiceSocket: Sendable {
    public struct Reader {
        /// Up to 127 octets of UTF-8; what is longer is cut.
        public var name: String
        /// Nil for a reader without a card.
        public var card: (any CardEnd)?
        /// What the reader itself answers to `FF CA 00 00` (PC/SC part 3): the UID of a contactless card. Nil leaves it to the card.
        public var identifier: [UInt8]?

        public init(name: String, card: (any CardEnd)?, identifier: [UInt8]? = nil) {
            self.name = name
            self.card = card
            self.identifier = identifier
        }
    }

    public struct Options: Sendable {
        /// Entries of the reader table in the clients' libpcsclite before pcsc-lite 2.5: 16, or 48 in Fedora's builds. A wrong number is met in silence.
        public var tableSize: Int
        /// How long after the last program a card keeps its power.
        public var grace: Duration

        public init(tableSize: Int = 16, grace: Duration = .seconds(5)) {
            self.tableSize = tableSize
            self.grace = grace
        }
    }

    public enum Event: Sendable, Equatable {
        case inserted(reader: Int)
        case removed(reader: Int)
    }

    public let path: String
    private let loop: ServiceLoop

    /// - Parameters:
    ///   - readers: each card is from now on called by its own thread only.
    ///   - onEvent: called on the serving thread.
    public init(
        readers: sending [Reader], path: String, options: Options = Options(),
        onEvent: @escaping @Sendable (Event) -> Void = { _ in }
    ) {
        self.path = path
        loop = ServiceLoop(readers: readers, path: path, options: options, onEvent: onEvent)
    }

    /// Listens and serves on threads of its own. Every card has power when this returns.
    ///
    /// - Throws: ``LinkError`` with the code `notListening` when the path is too long, taken or not writable, `servesAlready`, `noThread`.
    public func start() throws(LinkError) { try loop.start() }

    /// Ends serving: connections are closed, cards lose their power, the path goes away. Returns when that is done.
    public func stop() { loop.stop() }

    /// Takes a reader's card out, in the middle of an exchange if there is one.
    public func remove(reader: Int = 0) { loop.tell(.removed(reader: reader)) }

    /// Puts a reader's card back.
    public func insert(reader: Int = 0) { loop.tell(.inserted(reader: reader)) }
}
