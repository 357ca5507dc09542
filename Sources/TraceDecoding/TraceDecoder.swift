// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import TagTransport
import TraceFile

/// Says what the rows of a trace mean, one row after the other.
///
/// This is the built-in view: ISO/IEC 7816-4 commands and responses, basic access control and 3DES secure messaging, and the
/// trace's own rows. It never fails; what it does not know stays bytes.
public struct TraceDecoder: Sendable {
    private let secrets: SecretStore
    /// A tracker with the keys of the secrets, before its first message.
    private let freshChannel: ChannelTracker
    private let showsSecrets: Bool
    private var interfaces: [TraceInterface]
    private var readers: [Int: ReaderState] = [:]
    /// The functions' base names by the calls' numbers.
    private var calls: [Int: String] = [:]

    /// What is known of one reader's card.
    private struct ReaderState: Sendable {
        var channel: ChannelTracker
        var file = FileTracker()
        var pending: Pending?
    }

    private struct Pending: Sendable {
        var packet: UInt64?
        /// The command as sent.
        var sent: CommandAPDU
        /// The command inside, when it was protected and opened; else the command as sent.
        var meant: CommandAPDU
        var opening: ChannelTracker.Opening
    }

    /// - Parameter showsSecrets: whether fields and opened messages hold octets that are sealed in the trace.
    public init(interfaces: [TraceInterface], secrets: SecretStore = SecretStore(), showsSecrets: Bool = false) {
        self.interfaces = interfaces
        self.showsSecrets = showsSecrets
        self.secrets = secrets
        freshChannel = ChannelTracker(secrets: secrets)
    }

    /// A reader's interfaces were declared after the first row.
    public mutating func add(_ interface: TraceInterface) { interfaces.append(interface) }

    /// Message authentication codes that were checked in all sessions, and those that held.
    public var authentication: (checked: Int, held: Int) {
        readers.values.reduce((0, 0)) { ($0.0 + $1.channel.checked, $0.1 + $1.channel.held) }
    }

    public mutating func push(_ row: TraceRow) -> DecodedRow {
        let kind = interfaces.indices.contains(row.interface) ? interfaces[row.interface].kind : .other("")
        let places = SealedPlaces(row: row, secrets: secrets)
        var decoded = DecodedRow(row: row, interface: kind, kind: .frame)
        decoded.sealed = places.places
        switch kind {
        // A frame that went to a card of ISO/IEC 7816-4 stands among its commands and is none.
        case .apdu where row.dissector == "data": frame(&decoded)
        case .apdu(let reader): apdu(&decoded, places, reader)
        case .plain: plainView(&decoded)
        case .rf: frame(&decoded)
        case .reader(let reader): readerRow(&decoded, reader)
        case .meta: metaRow(&decoded)
        case .other:
            if row.dissector == "iso7816" { apdu(&decoded, places, 0) } else { frame(&decoded) }
        }
        return decoded
    }

    // MARK: - APDUs

    private mutating func apdu(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ reader: Int) {
        decoded.grammar = "iso7816"
        var state = readers[reader] ?? ReaderState(channel: freshChannel)
        defer {
            if state.channel.isOpen { decoded.sessions.append(("secureMessaging", "open")) }
            readers[reader] = state
        }
        if decoded.row.direction == .received {
            if decoded.row.body.first == 0x3B || decoded.row.body.first == 0x3F, state.pending?.packet != decoded.row.packetID {
                decoded.kind = .reader
                decoded.grammar = "atr"
                decoded.message = "atr"
                decoded.summary = "ATR \(Hex.encode(decoded.row.body))"
                return
            }
            response(&decoded, places, &state)
        } else {
            command(&decoded, places, &state)
        }
    }

    private func command(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ state: inout ReaderState) {
        decoded.kind = .command
        decoded.message = "command"
        state.pending = nil
        let command: CommandAPDU
        do { command = try CommandAPDU(bytes: places.octets) } catch {
            decoded.summary = "malformed command, \(places.octets.count) bytes"
            decoded.annotations.append(
                Annotation(code: "malformed", severity: .error, text: error.description, path: "iso7816.command", blame: .program)
            )
            return
        }
        decoded.fields = APDUFields.fields(of: command, sealed: showsSecrets ? places.unknown : places.places)
        let isProtected = command.cla & 0xEC == 0x0C
        let opened = state.channel.push(command: command)
        decoded.opening = DecodedRow.Opening(opened.opening)
        if case .failed(let text) = opened.opening {
            decoded.annotations.append(
                Annotation(code: "failed", severity: .error, text: text, path: "secureMessaging.command.mac", blame: .program)
            )
        } else if opened.opening == .opened {
            decoded.annotations.append(Annotation(code: "held", severity: .note, text: "the command's MAC held", path: "secureMessaging.command.mac"))
        }
        let meant = opened.command ?? command
        if isProtected, let inner = opened.command, showsSecrets || places.places.isEmpty { decoded.plain = inner.octets }
        decoded.summary = CommandName.summary(meant, isProtected: isProtected && opened.command == nil, in: state.file.application)
        if command.ins == 0x82, command.data?.count == 40 { decoded.summary = "EXTERNAL AUTHENTICATE, BAC" }
        if meant.ins == 0xB0, meant.p1 & 0x80 == 0, let ne = meant.ne, !isProtected || opened.command != nil {
            decoded.read = ReadPlace(offset: Int(meant.p1) << 8 | Int(meant.p2), length: ne)
        }
        state.pending = Pending(packet: decoded.row.packetID, sent: command, meant: meant, opening: opened.opening)
    }

    private func response(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ state: inout ReaderState) {
        decoded.kind = .response
        decoded.message = "response"
        let response: ResponseAPDU
        do { response = try ResponseAPDU(bytes: places.octets) } catch {
            decoded.summary = "malformed answer, \(places.octets.count) bytes"
            decoded.annotations.append(
                Annotation(code: "malformed", severity: .error, text: error.description, path: "iso7816.response", blame: .card)
            )
            return
        }
        decoded.fields = APDUFields.fields(of: response)
        guard let pending = state.pending, pending.packet == decoded.row.packetID || pending.packet == nil else {
            decoded.summary = StatusWord.text(response.statusWord)
            return
        }
        state.pending = nil
        let opened = state.channel.push(response: response, to: pending.sent, packet: decoded.row.packetID)
        let isProtected = pending.sent.cla & 0xEC == 0x0C
        decoded.opening = DecodedRow.Opening(opened.opening)
        switch opened.opening {
        case .failed(let text):
            decoded.annotations.append(
                Annotation(code: "failed", severity: .error, text: text, path: "secureMessaging.response.mac", blame: .card)
            )
        case .opened:
            decoded.annotations.append(Annotation(code: "held", severity: .note, text: "the answer's MAC held", path: "secureMessaging.response.mac"))
        case .plain, .sealed: break
        }
        if isProtected, response.data.isEmpty, !response.isSuccess {
            decoded.annotations.append(
                Annotation(
                    code: "unprotected", severity: .warn,
                    text: "the card answered \(StatusWord.text(response.statusWord)) without secure messaging", blame: .card
                )
            )
        }
        if opened.response != nil, isProtected, opened.opening == .opened { decoded.plain = opened.response?.octets }
        let meant = opened.response ?? response
        if state.channel.agreed {
            decoded.summary = "keys agreed"
        } else if isProtected, opened.response == nil {
            decoded.summary = opened.opening == .sealed ? "sealed" : "not opened"
        } else if let whole = state.file.push(command: pending.meant, response: meant) {
            decoded.summary = whole
        } else {
            decoded.summary = answer(meant, to: pending.meant)
        }
    }

    /// What the answer column says: the status word, or the data when that is what was asked for.
    private func answer(_ response: ResponseAPDU, to command: CommandAPDU) -> String {
        if !StatusWord.isSuccess(response.statusWord) || response.data.isEmpty { return StatusWord.text(response.statusWord) }
        if command.ins == 0x84 || response.data.count > 4 { return "\(CommandName.grouped(response.data.count)) bytes" }
        return Hex.encode(response.data)
    }

    private func plainView(_ decoded: inout DecodedRow) {
        decoded.kind = decoded.row.direction == .received ? .response : .command
        decoded.grammar = "iso7816"
        decoded.summary = "\(decoded.row.body.count) bytes, derived"
    }

    // MARK: - Frames

    private func frame(_ decoded: inout DecodedRow) {
        decoded.kind = .frame
        let protocolText = decoded.row.protocolText ?? decoded.row.dissector
        decoded.grammar = decoded.row.dissector
        var body = decoded.row.body[...]
        // Link type 264 puts four octets before a frame: version, event, length.
        if decoded.row.dissector == "iso14443", body.count >= 4 { body = body.dropFirst(4) }
        let room = max(4, 18 - protocolText.utf8.count / 2)
        decoded.summary = "\(protocolText) \(Hex.encode(body.prefix(room)))\(body.count > room ? "..." : "")"
        decoded.answer = body.count > 7 ? "\(Hex.encode(body.prefix(5)))..." : Hex.encode(body)
    }

    // MARK: - Rows of JSON

    private mutating func readerRow(_ decoded: inout DecodedRow, _ reader: Int) {
        decoded.grammar = "pcscReader"
        guard decoded.row.dissector == "json", let meta = MetaRow(body: decoded.row.body) else {
            decoded.kind = .reader
            decoded.isTwin = decoded.row.dissector == "syslog"
            decoded.summary = String(decoding: decoded.row.body, as: UTF8.self)
            return
        }
        MetaText.describe(meta, &decoded, secrets: secrets)
        switch meta {
        case .reader(let event) where event.name != "control":
            if event.name == "connect" { decoded.answer = way(of: decoded.row.interface) }
            readers[reader]?.channel.reset()
            readers[reader]?.file.reset()
        case .error: readers[reader]?.pending = nil
        default: break
        }
    }

    /// How the card is spoken to: what stands in brackets behind the reader's name, `T=1`.
    private func way(of interface: Int) -> String {
        guard interfaces.indices.contains(interface), let reader = interfaces[interface].kind.readerNumber,
            let description = interfaces.first(where: { $0.kind == .apdu(reader) })?.description, description.hasSuffix(")"),
            let bracket = description.lastIndex(of: "(")
        else { return "" }
        return String(description[description.index(after: bracket)...].dropLast())
    }

    private mutating func metaRow(_ decoded: inout DecodedRow) {
        guard let meta = MetaRow(body: decoded.row.body) else {
            decoded.kind = .event
            decoded.summary = "\(decoded.row.body.count) bytes that are no row of ours"
            return
        }
        MetaText.describe(meta, &decoded, secrets: secrets)
        switch meta {
        case .call(let row): calls[row.id] = MetaText.baseName(row.function)
        case .return(let row): decoded.summary = "\(calls[row.call] ?? "call \(row.call)"): \(decoded.summary)"
        default: break
        }
    }
}

extension DecodedRow.Opening {
    init(_ opening: ChannelTracker.Opening) {
        self =
            switch opening {
            case .plain: .plain
            case .sealed: .sealed
            case .opened: .opened
            case .failed: .failed
            }
    }
}
