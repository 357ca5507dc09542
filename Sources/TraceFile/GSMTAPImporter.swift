// SPDX-License-Identifier: MIT

/// Makes traces of what SIMtrace, pySim and others send as GSMTAP: exchanges with a SIM in UDP packets to port 4729, kept
/// in a pcap or pcapng capture of a network.
///
/// - A packet holds a command and its answer with nothing between them. Where the one ends is told by their lengths, the
///   instruction, the status word, or the rest of the capture, in this order; what none tells is taken as data to the card,
///   counted, and said. Both rows have the packet's time.
/// - An ATR is a reader's event, `connect` the first and `reset` every later one, with the ATR's own row.
/// - What cannot be split stays one row of `data`. Nothing of a packet's octets is changed or left out.
/// - The session's id is made of the input's octets: the same file becomes the same trace.
///
/// PINs stand in what is imported as they stood in the capture; `ImportedTrace.write(to:replacing:)` of Tracing seals them.
public enum GSMTAPImporter {
    /// Imports the octets of a capture.
    ///
    /// - Parameters:
    ///   - name: the file's name, for the interface's description and the marks.
    ///   - application: what the trace's header says made it.
    /// - Throws: ``TraceFileError``: `empty`, `notACapture`, `nothingToImport` for a capture without a GSMTAP packet of a SIM,
    ///   `tooLarge` for one with 500,000 of them.
    public static func importTrace(
        _ octets: [UInt8], name: String, application: String = "tapdeck"
    ) throws(TraceFileError) -> ImportedTrace {
        guard !octets.isEmpty else { throw TraceFileError(.empty, path: name) }
        var found = GSMTAPFindings()
        var damage: TraceDamage?
        if ClassicCapture.isOne(octets) {
            var capture = try ClassicCapture(octets, path: name)
            let linkType = capture.linkType
            while !found.isFull, let packet = capture.next() { found.take(packet.octets, linkType, at: packet.time) }
            damage = capture.damage
        } else {
            if let error = CaptureGuess.refusal([UInt8](octets.prefix(12)), path: name, failure: nil) { throw error }
            var reader = try TraceReader(octets: octets)
            while !found.isFull, let row = reader.nextRow() {
                found.take(row.body, reader.interfaces[row.interface].linkType, at: row.time)
            }
            damage = reader.damage
        }
        guard !found.isFull else {
            throw TraceFileError(
                .tooLarge, path: name,
                detail: "\(counted(ImportedExchanges.rowLimit / 2, "packet")) of a SIM are as many as are read"
            )
        }
        let exchanges = found.exchanges()
        guard !exchanges.isEmpty else {
            let lines = found.passedOver + (damage.map { ["it is \($0)"] } ?? [])
            let what = "no GSMTAP packet of a SIM on UDP port \(GSMTAPPacket.port)"
            throw TraceFileError(.nothingToImport, path: name, detail: ([what] + lines).joined(separator: "; "))
        }
        var summary = ["imported from GSMTAP capture \(name): \(found.description(exchanges))"]
        summary.append("lost: the time between a command and its answer, both have that of their packet")
        summary += found.passedOver + found.notes
        if let damage { summary.append("\(name) is \(damage)") }
        let header = TraceHeader(session: Proxmark3Importer.sessionID(octets), application: application)
        let trace = exchanges.trace(header, reader: "", source: "GSMTAP capture \(name)", summary: summary)
        return ImportedTrace(trace: trace, protocol: nil, isByContent: false, summary: summary, damage: damage)
    }

    /// Imports a file, compressed with gzip or not. Nothing is written.
    ///
    /// - Throws: as ``importTrace(_:name:application:)``, and `notFound`, `noPermission`, `isDirectory`, `cannotRead`,
    ///   `tooLarge` for one over 256 MiB.
    public static func importFile(_ path: String, application: String = "tapdeck") throws(TraceFileError) -> ImportedTrace {
        try ImportedTrace.ofFile(path, limit: sizeLimit) { octets, name throws(TraceFileError) in
            try importTrace(octets, name: name, application: application)
        }
    }

    /// Captures of more hold other traffic: `tshark -r A -Y gsmtap -w B` takes it out.
    private static let sizeLimit = 256 << 20
}

/// What was found in a capture, packet by packet.
private struct GSMTAPFindings {
    private(set) var packetCount = 0
    private var packets: [(time: UInt64, packet: GSMTAPPacket)] = []
    private var habits = JoinedExchange.Habits()
    private var senders: Set<[UInt8]> = []
    private var otherTraffic = 0
    private var radio = 0
    private var malformed = 0
    private var fragments = 0
    private var cut = 0
    private var versions: [UInt8: Int] = [:]
    private var unknown: [UInt8: Int] = [:]
    private var foreignLinks: [UInt16: Int] = [:]
    private var pieces = 0
    private var assumed = 0
    private var byOthers = 0
    private var unsplit = 0

    var isFull: Bool { packets.count >= ImportedExchanges.rowLimit / 2 }

    mutating func take(_ frame: ArraySlice<UInt8>, _ linkType: UInt16, at time: UInt64) {
        packetCount += 1
        guard Datagram.isKnown(linkType) else {
            foreignLinks[linkType, default: 0] += 1
            return
        }
        guard let datagram = Datagram(frame, linkType: linkType),
            datagram.destinationPort == GSMTAPPacket.port || datagram.sourcePort == GSMTAPPacket.port
        else {
            otherTraffic += 1
            return
        }
        switch datagram.state {
        case .fragment: fragments += 1
        case .cut: cut += 1
        case .whole: take(GSMTAPPacket(datagram.payload), datagram, at: time)
        }
    }

    private mutating func take(_ packet: GSMTAPPacket, _ datagram: Datagram, at time: UInt64) {
        switch packet {
        case .radio: radio += 1
        case .malformed: malformed += 1
        case .version(let number): versions[number, default: 0] += 1
        case .unknown(let number): unknown[number, default: 0] += 1
        case .exchange(let octets):
            habits.learn(octets)
            keep(packet, datagram, time)
        case .piece:
            pieces += 1
            keep(packet, datagram, time)
        case .atr: keep(packet, datagram, time)
        }
    }

    private mutating func keep(_ packet: GSMTAPPacket, _ datagram: Datagram, _ time: UInt64) {
        packets.append((time, packet.detached))
        if senders.count < 100 { senders.insert(datagram.sender) }
    }

    /// The packets as exchanges. Counts what is assumed on the way.
    mutating func exchanges() -> ImportedExchanges {
        var found = ImportedExchanges()
        for (time, packet) in packets {
            switch packet {
            case .atr(let octets):
                found.append(.card(event: found.cardCount == 0 ? "connect" : "reset", atr: [UInt8](octets)), at: time)
            case .piece(let octets, let direction, let text):
                found.append(.other(body: [UInt8](octets), direction: direction, text: text), at: time)
            case .exchange(let octets):
                guard let joined = JoinedExchange(octets, habits) else {
                    unsplit += 1
                    found.append(.other(body: [UInt8](octets), direction: .sent, text: "GSMTAP SIM"), at: time)
                    continue
                }
                if joined.reason == .assumed { assumed += 1 }
                if joined.reason == .others { byOthers += 1 }
                found.append(
                    .exchange(command: [UInt8](joined.command), answer: [UInt8](joined.answer), answered: time), at: time
                )
            case .radio, .unknown, .version, .malformed: break
            }
        }
        packets = []
        return found
    }

    func description(_ exchanges: ImportedExchanges) -> String {
        var parts = [counted(exchanges.exchangeCount, "exchange")]
        if exchanges.cardCount > 0 { parts.append(counted(exchanges.cardCount, "ATR")) }
        if pieces > 0 { parts.append(counted(pieces, "PPS or TPDU piece")) }
        return parts.joined(separator: ", ")
    }

    /// What is not in the trace, a line each.
    var passedOver: [String] {
        var lines: [String] = []
        for (number, count) in versions.sorted(by: { $0.key < $1.key }) {
            lines.append("passed over: \(counted(count, "packet")) of GSMTAP version \(number), version 2 is read")
        }
        if radio > 0 { lines.append("passed over: \(counted(radio, "GSMTAP packet")) of the radio side") }
        for (number, count) in unknown.sorted(by: { $0.key < $1.key }) {
            lines.append("passed over: \(counted(count, "packet")) of SIM sub-type \(number), which is not known")
        }
        if malformed > 0 {
            lines.append("passed over: \(counted(malformed, "packet")) to port \(GSMTAPPacket.port) without a GSMTAP header")
        }
        if cut > 0 { lines.append("passed over: \(counted(cut, "packet")) that the capture did not keep whole") }
        if fragments > 0 {
            lines.append("passed over: \(counted(fragments, "packet")) sent in IP fragments, which are not put together")
        }
        for (number, count) in foreignLinks.sorted(by: { $0.key < $1.key }) {
            lines.append("passed over: \(counted(count, "packet")) of link type \(number), which is not read")
        }
        if otherTraffic > 0 { lines.append("passed over: \(counted(otherTraffic, "packet")) of other traffic") }
        return lines
    }

    /// What was not certain, a line each.
    var notes: [String] {
        var lines: [String] = []
        if byOthers > 0 {
            let words = counted(byOthers, "command was", "commands were")
            lines.append("\(words) told from the answer by others of the same instruction")
        }
        if assumed > 0 {
            let words = counted(assumed, "command fits", "commands fit")
            lines.append("\(words) two readings and nothing tells which: taken as data to the card")
        }
        if unsplit > 0 {
            let words = counted(unsplit, "packet fits", "packets fit")
            lines.append("\(words) no command with an answer: kept as data")
        }
        if senders.count > 1 {
            let number = senders.count == 100 ? "100 senders or more" : "\(senders.count) senders"
            lines.append("the packets came from \(number), that may be as many cards")
        }
        return lines
    }
}

extension GSMTAPPacket {
    /// The same over octets of its own, so that a reader's buffer is not kept for it.
    fileprivate var detached: GSMTAPPacket {
        switch self {
        case .exchange(let octets): .exchange([UInt8](octets)[...])
        case .atr(let octets): .atr([UInt8](octets)[...])
        case .piece(let octets, let direction, let text): .piece([UInt8](octets)[...], direction, text)
        case .radio, .unknown, .version, .malformed: self
        }
    }
}

extension OctetSource {
    /// All octets of a file, opened when it is gzip, when they are at most `limit`.
    static func load(_ path: String, limit: Int) throws(TraceFileError) -> [UInt8] {
        let source = try OctetSource(path: path)
        let octets = try source.readAll(limit: limit)
        guard octets.starts(with: [0x1F, 0x8B]) else { return octets }
        try source.decompress(head: octets)
        return try source.readAll(limit: limit)
    }
}
