// SPDX-License-Identifier: MIT

import CardCrypto
import Flows
import Glibc
import Octets
import Synchronization
import TagTransport
import TraceFile

/// Where a recording keeps what is secret.
public enum SecretsPlacement: Sendable, Hashable {
    /// In `NAME.secrets` beside `NAME.pcapng`.
    case beside
    /// Inside the trace: for traces of specimen cards that are kept in a repository.
    case embedded
    /// Nowhere. The trace can be looked at and cannot be replayed with its own random octets.
    case none
}

/// Writes rows and secrets in the order in which things happen. Everything goes through one lock, so that the order in the
/// file is the order of events; a secret is on disk before the row that used it.
///
/// Recording never changes what passes: when the file cannot be written, the first error is kept for
/// ``failure`` and nothing more is written.
final class TraceRecorder: Sendable {
    /// The interfaces of one reader.
    struct Port: Sendable, Hashable {
        var reader: Int
        var apdu: Int
        var frames: Int?
        var events: Int
    }

    struct State: ~Copyable {
        var writer: TraceWriter
        var secrets: SecretsWriter?
        var embedsSecrets: Bool
        var keepsSecrets: Bool { secrets != nil || embedsSecrets }
        var failure: TraceFileError?
        var nextPacket: UInt64 = 1
        /// The number of the run of draws that is going on before the next exchange.
        var drawRun: UInt64?
        var lastExchange: UInt64 = 0
        var meta: Int?
        var readers = 0
        var calls: [Int: CallState] = [:]
        var nextCall = 1
        var transports: [TransportState] = []
        var summary = RecordingSummary()
        var firstTime: UInt64?
        var lastTime: UInt64 = 0

        mutating func saw(_ time: UInt64) {
            firstTime = firstTime ?? time
            lastTime = time
        }
    }

    struct CallState {
        var packet: UInt64
        var draws: [String: Int] = [:]
        var progress = 0
    }

    struct TransportState {
        var id: Int
        var port: Port
        var isWritten: Bool
        var description: TransportDescription
    }

    let state: Mutex<State>
    let session: String
    private let now: @Sendable () -> UInt64
    private let skipped: SkippedTime

    init(
        creating path: String, session: String, header: TraceHeader, secrets: SecretsPlacement, replacing: Bool,
        now: @escaping @Sendable () -> UInt64
    ) throws(TraceFileError) {
        let writer = try TraceWriter(creating: path, header: header, interfaces: [], replacing: replacing)
        var side: SecretsWriter?
        if secrets == .beside {
            side = try SecretsWriter(
                creating: SecretStore.sidePath(forTrace: path), session: session, application: header.application,
                replacing: replacing
            )
        }
        self.session = session
        let skipped = SkippedTime()
        self.skipped = skipped
        self.now = { now() &+ skipped.nanoseconds.load(ordering: .relaxed) }
        state = Mutex(State(writer: writer, secrets: side, embedsSecrets: secrets == .embedded))
    }

    /// A clock of nanoseconds since 1970 that never steps back: the calendar at its start, then the monotonic clock.
    static func steadyClock() -> @Sendable () -> UInt64 {
        @Sendable func read(_ clock: clockid_t) -> UInt64 {
            var time = timespec()
            clock_gettime(clock, &time)
            return UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
        }
        let start = read(CLOCK_REALTIME)
        let origin = read(CLOCK_MONOTONIC)
        return { start &+ (read(CLOCK_MONOTONIC) &- origin) }
    }

    // MARK: - Readers

    /// Declares the interfaces of a newly seen reader. Its connection is written as a card event.
    func addReader(_ description: TransportDescription) -> Port {
        let time = now()
        return state.withLock { state in
            let reader = state.readers
            state.readers += 1
            func add(_ kind: InterfaceKind, _ text: String) -> Int {
                guard state.failure == nil else { return 0 }
                do { return try state.writer.addInterface(TraceInterface(kind, description: text)) } catch {
                    state.failure = error
                    return 0
                }
            }
            let name = description.readerName.isEmpty ? "transport" : description.readerName
            let way = description.protocolName.isEmpty ? "" : " (\(description.protocolName))"
            let apdu = add(.apdu(reader), name + way)
            let frames = description.hasFrames ? add(.rf(reader), "\(name), frames") : nil
            let port = Port(reader: reader, apdu: apdu, frames: frames, events: add(.reader(reader), "\(name), events"))
            state.summary.readerNames.append(name)
            // Rows of `meta` belong to the whole session, so its interface is declared with the first reader's.
            _ = metaInterface(&state)
            let packet = takePacket(&state)
            writeEvent(
                MetaRow.Reader(name: "connect", atr: description.atr.isEmpty ? nil : description.atr), packet, time, port, &state)
            if !description.atr.isEmpty { writeATR(description.atr, packet, time, port, &state) }
            state.transports.append(
                TransportState(id: reader + 1, port: port, isWritten: false, description: description)
            )
            return port
        }
    }

    // MARK: - Exchanges

    func beginAPDU(_ command: [UInt8], on port: Port) -> UInt64 {
        let places = SealTable.places(command: command)
        return begin(command, sealed: places.command, dissector: "iso7816", interface: port.apdu, offset: 0)
    }

    func endAPDU(_ response: [UInt8], to command: [UInt8], _ exchange: UInt64, on port: Port) {
        let places = SealTable.places(command: command, answer: response)
        end(response, sealed: places.answer, dissector: "iso7816", exchange, interface: port.apdu)
        guard response.count >= 2, command.count >= 2 else { return }
        let status = UInt16(response[response.count - 2]) << 8 | UInt16(response[response.count - 1])
        // DESFire: done, more frames follow, done with a signature.
        guard status != 0x9000, status >> 8 != 0x61, ![0x9100, 0x91AF, 0x9190].contains(status) else { return }
        state.withLock {
            $0.summary.lastRefusal = RecordingSummary.Refusal(exchange: exchange, instruction: command[1], status: status)
        }
    }

    func beginFrame(_ frame: [UInt8], on port: Port) -> UInt64 {
        let places = SealTable.places(frame: frame, answer: [], checksum: 0)
        return begin(frame, sealed: places.command, dissector: "data", interface: port.frames ?? port.apdu, offset: 0)
    }

    func endFrame(_ answer: [UInt8], to frame: [UInt8], _ exchange: UInt64, on port: Port) {
        let places = SealTable.places(frame: frame, answer: answer, checksum: 0)
        end(answer, sealed: places.answer, dissector: "data", exchange, interface: port.frames ?? port.apdu)
    }

    func failExchange(_ exchange: UInt64, on port: Port, _ error: any Error) {
        let failure = FlowFailure.describe(error)
        let time = now()
        state.withLock { state in
            let packet = takePacket(&state)
            state.summary.errors += 1
            state.summary.lostExchange = exchange
            writeError(failure, after: exchange, packet, time, port, &state)
        }
    }

    private func begin(
        _ body: [UInt8], sealed: [Range<Int>], dissector: String, interface: Int, offset: Int
    ) -> UInt64 {
        let time = now()
        return state.withLock { state in
            let packet = takePacket(&state)
            state.lastExchange = packet
            state.summary.exchanges += 1
            writeRow(time, interface, .sent, packet, dissector, body, sealed, &state)
            return packet
        }
    }

    private func end(_ body: [UInt8], sealed: [Range<Int>], dissector: String, _ exchange: UInt64, interface: Int) {
        let time = now()
        state.withLock { state in writeRow(time, interface, .received, exchange, dissector, body, sealed, &state) }
    }

    // MARK: - Writing

    /// The next exchange's number. Whatever takes one ends a run of draws.
    func takePacket(_ state: inout State) -> UInt64 {
        defer { state.nextPacket += 1 }
        state.drawRun = nil
        return state.nextPacket
    }

    func metaInterface(_ state: inout State) -> Int {
        if let meta = state.meta { return meta }
        guard state.failure == nil else { return 0 }
        do {
            let index = try state.writer.addInterface(TraceInterface(.meta, description: "calls, random octets, states, marks"))
            state.meta = index
            return index
        } catch {
            state.failure = error
            return 0
        }
    }

    /// Writes a row whose octets at `sealed` are secret: they are kept among the secrets first and stand as `00` in the row.
    private func writeRow(
        _ time: UInt64, _ interface: Int, _ direction: RowDirection, _ packet: UInt64, _ dissector: String, _ body: [UInt8],
        _ sealed: [Range<Int>]?, _ state: inout State
    ) {
        guard state.failure == nil else { return }
        state.saw(time)
        do {
            guard let sealed, !sealed.isEmpty else {
                try state.writer.writeRow(
                    time: time, interface: interface, direction: direction, packetID: packet, dissector: dissector, body: body
                )
                return
            }
            var shown = body
            var records: [SecretRecord] = []
            let inside = sealed.filter { $0.upperBound <= body.count }
            for place in inside {
                records.append(
                    SecretRecord(
                        kind: .sealed, packetID: UInt32(truncatingIfNeeded: packet),
                        interface: UInt16(truncatingIfNeeded: interface),
                        direction: direction, offset: UInt32(truncatingIfNeeded: place.lowerBound), octets: Array(body[place])
                    )
                )
                for index in place { shown[index] = 0 }
            }
            try keep(records, &state)
            let comment = SealedRange.comment(inside.map { SealedRange(offset: $0.lowerBound, length: $0.count) })
            try state.writer.writeRow(
                time: time, interface: interface, direction: direction, packetID: packet, dissector: dissector, body: shown,
                comment: comment
            )
        } catch {
            state.failure = error
        }
    }

    /// Puts secrets on disk.
    func keep(_ records: [SecretRecord], _ state: inout State) throws(TraceFileError) {
        if state.embedsSecrets {
            try state.writer.write(secrets: records)
        } else if state.secrets != nil {
            try state.secrets?.write(records)
        }
    }

    func writeMeta(_ row: MetaRow, packet: UInt64, time: UInt64, _ state: inout State) {
        guard state.failure == nil else { return }
        let interface = metaInterface(&state)
        guard state.failure == nil else { return }
        state.saw(time)
        do {
            try state.writer.writeRow(
                time: time, interface: interface, direction: nil, packetID: packet, dissector: "json", body: Array(row.text.utf8)
            )
        } catch {
            state.failure = error
        }
    }

    /// A syslog line and its JSON twin, under one number.
    func writeTwins(_ row: MetaRow, packet: UInt64, time: UInt64, _ port: Port, _ state: inout State) {
        guard state.failure == nil else { return }
        state.saw(time)
        let reader = state.summary.readerNames.indices.contains(port.reader) ? state.summary.readerNames[port.reader] : ""
        do {
            for twin in ReaderRows.rows(for: row, reader: reader, time: time, interface: port.events, packetID: packet) {
                try state.writer.write(twin)
            }
        } catch {
            state.failure = error
        }
    }

    func writeATR(_ atr: [UInt8], _ packet: UInt64, _ time: UInt64, _ port: Port, _ state: inout State) {
        writeRow(time, port.apdu, .received, packet, "iso7816", atr, nil, &state)
    }

    func currentTime() -> UInt64 { now() }

    /// Moves the stamps of later rows on: a session lives by a clock of its own, and its time went on.
    func skipTime(_ nanoseconds: Int64) {
        skipped.nanoseconds.wrappingAdd(UInt64(clamping: nanoseconds), ordering: .relaxed)
    }
}

/// How much time passed on a clock that stands still but when it is moved.
private final class SkippedTime: Sendable {
    let nanoseconds = Atomic<UInt64>(0)
}
