// SPDX-License-Identifier: MIT

import GrammarLibrary
import GrammarRuntime
import Octets
import TraceFile

/// Says what the rows of a trace mean, one row after the other, by the grammars and by the trace's own rows.
///
/// It never fails; what no grammar knows stays bytes. There is one decoder of the grammars for each card connection and kind of
/// row, so that a frame on the air and the command that carried it do not disturb each other.
public struct TraceDecoder: Sendable {
    /// Whether rows get their fields and derived buffers; a summary does without.
    public var wantsFields = true
    /// Whether failed checks try the neighbours that the grammars name, which costs time on hostile input.
    public var triesNearMisses = false
    /// Whether pieces of a file that holds a secret are left out, as its secret fields are. Who compares them, or opens them for
    /// other tools, needs them.
    public var hidesPieces = true

    let secrets: SecretStore
    let showsSecrets: Bool
    let index: GrammarIndex
    let keys: KeyTable
    var interfaces: [TraceInterface]
    var reader: FieldReader
    /// The card connections seen so far, few, each with what it belongs to.
    var cards: [CardReading] = []
    private var channels: [Channel] = []
    var calls = CallEvents()

    /// What a decoder of the grammars belongs to.
    enum Channel: Hashable {
        case apdu(Int)
        case rf(Int)
        case plain(Int)
        case calls
    }

    /// - Parameters:
    ///   - showsSecrets: whether fields and opened messages hold octets that are sealed in the trace.
    ///   - grammars: nil for those built in.
    public init(
        interfaces: [TraceInterface], secrets: SecretStore = SecretStore(), showsSecrets: Bool = false,
        grammars: GrammarLibrary? = nil
    ) {
        self.interfaces = interfaces
        self.showsSecrets = showsSecrets
        self.secrets = secrets
        index = grammars.map { GrammarIndex($0.program) } ?? .standard
        keys = KeyTable(secrets, index)
        reader = FieldReader(index.program)
    }

    /// A reader's interfaces were declared after the first row.
    public mutating func add(_ interface: TraceInterface) { interfaces.append(interface) }

    /// Message authentication codes that were checked in all sessions, and those that held.
    public var authentication: (checked: Int, held: Int) { cards.reduce((0, 0)) { ($0.0 + $1.checked, $0.1 + $1.held) } }

    public mutating func push(_ row: TraceRow) -> DecodedRow {
        let kind = interfaces.indices.contains(row.interface) ? interfaces[row.interface].kind : .other("")
        let places = SealedPlaces(row: row, secrets: secrets)
        var decoded = DecodedRow(row: row, interface: kind, kind: .frame)
        decoded.sealed = places.places
        switch kind {
        // A frame that went to a card of ISO/IEC 7816-4 stands among its commands and is none.
        case .apdu(let reader) where row.dissector == "data": bareFrame(&decoded, places, .apdu(reader))
        case .apdu(let reader): apdu(&decoded, places, .apdu(reader))
        case .plain(let reader): plainView(&decoded, places, reader)
        case .rf: frame(&decoded, places)
        case .reader(let reader): readerRow(&decoded, reader)
        case .meta: metaRow(&decoded)
        case .other: if row.dissector == "iso7816" { apdu(&decoded, places, .apdu(0)) } else { frame(&decoded, places) }
        }
        return decoded
    }

    // MARK: - APDUs

    /// The place of a channel's card among ``cards``.
    mutating func card(_ channel: Channel) -> Int {
        for place in channels.indices where channels[place] == channel { return place }
        channels.append(channel)
        cards.append(CardReading(index, keys, triesNearMisses: triesNearMisses))
        return cards.count - 1
    }

    private mutating func apdu(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ channel: Channel) {
        decoded.grammar = "iso7816"
        let card = card(channel)
        if decoded.row.direction == .received {
            let first = decoded.row.body.first
            if first == 0x3B || first == 0x3F,
                cards[card].pending?.packet != decoded.row.packetID || cards[card].pending == nil
            {
                answerToReset(&decoded)
                return
            }
            response(&decoded, places, card)
        } else {
            command(&decoded, places, card)
        }
        decoded.sessions = cards[card].sessions(index)
    }

    private mutating func answerToReset(_ decoded: inout DecodedRow) {
        decoded.kind = .reader
        decoded.grammar = "atr"
        decoded.message = "atr"
        decoded.summary = "ATR \(Hex.encode(decoded.row.body))"
        guard wantsFields, index.answerToReset >= 0 else { return }
        var single = Decoder(index.program)
        let outcome = single.push(
            request: decoded.row.body, entry: index.answerToReset, exchange: Int(clamping: decoded.row.packetID ?? 0))
        take(&decoded, single, outcome, FieldReader.Cover())
    }

    private mutating func command(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ card: Int) {
        decoded.kind = .command
        decoded.message = "command"
        decoded.isProtected = isProtected(class: places.octets.first)
        guard index.command >= 0 else { return }
        let reading = cards[card].push(request: places.octets, entry: index.command, packet: decoded.row.packetID)
        cards[card].pending = nil
        cards[card].speaksNative = false
        finishCommand(&decoded, reading, card, FieldReader.Cover(places: places.places, showsSecrets: showsSecrets))
    }

    private mutating func finishCommand(
        _ decoded: inout DecodedRow, _ reading: CardReading.Reading, _ card: Int, _ cover: FieldReader.Cover
    ) {
        let decoder = cards[card].decoder
        take(&decoded, decoder, reading.outcome, cover)
        judge(&decoded, decoder, reading.outcome)
        let isSealed = decoded.isProtected && decoded.opening == .sealed
        let view = CommandView(decoder, index, isSealed: isSealed)
        if let view {
            let sealedName = decoded.opening == .sealed ? index.sealedName(view.ins, reading.exchange) : nil
            decoded.summary =
                sealedName ?? reading.headline ?? index.wrapped(decoder, reading.exchange)
                ?? index.headline(view, exchange: reading.exchange, in: cards[card].files.place)
            if view.ins == 0xB0, view.p1 & 0x80 == 0, let ne = view.ne, !isSealed, view.cla != 0xFF {
                decoded.read = ReadPlace(offset: view.offset, length: ne)
                decoded.fileName = cards[card].files.name
            }
        } else {
            decoded.summary = "malformed command, \(decoded.row.body.count) bytes"
        }
        cards[card].pending = CardReading.Pending(
            packet: decoded.row.packetID, exchange: reading.exchange, view: view, isProtected: decoded.isProtected)
    }

    private mutating func response(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ card: Int) {
        decoded.kind = .response
        decoded.message = "response"
        let pending = cards[card].pending
        let isPaired = pending != nil && (pending?.packet == decoded.row.packetID || pending?.packet == nil)
        if !isPaired { cards[card].decoder.machine.state.pending = nil }
        cards[card].pending = nil
        guard index.response >= 0 else { return }
        let reading = cards[card].push(response: places.octets, entry: index.response, packet: decoded.row.packetID)
        var cover = FieldReader.Cover(places: places.places, showsSecrets: showsSecrets)
        if hidesPieces, !showsSecrets, isPaired, let view = pending?.view, index.readsSecret(view, of: cards[card].files.message)
        {
            cover.part = index.responseData
        }
        finishResponse(&decoded, reading, isPaired ? pending : nil, card, cover)
    }

    private mutating func finishResponse(
        _ decoded: inout DecodedRow, _ reading: CardReading.Reading, _ pending: CardReading.Pending?, _ card: Int,
        _ cover: FieldReader.Cover
    ) {
        let decoder = cards[card].decoder
        decoded.isProtected = pending?.isProtected ?? false
        take(&decoded, decoder, reading.outcome, cover)
        judge(&decoded, decoder, reading.outcome)
        guard let sw = decoder.span(index.statusWord), reading.outcome.spans.contains(sw),
            decoder.spans[sw].bitCount == 16
        else {
            decoded.isSuccess = false
            decoded.summary = "malformed answer, \(decoded.row.body.count) bytes"
            return
        }
        let word = UInt16(truncatingIfNeeded: decoder.spans[sw].value)
        decoded.isSuccess = word == 0x9000
        let inner = decoder.span(index.carriedData).flatMap { reading.outcome.spans.contains($0) ? decoder.octets(of: $0) : nil }
        if inner == nil, decoded.opening == .sealed, word == 0x9100 {
            decoded.summary = "sealed"
            return
        }
        let data =
            inner
            ?? decoder.span(index.responseData).flatMap {
                reading.outcome.spans.contains($0) ? decoder.octets(of: $0) : nil
            } ?? []
        let wasOpened = decoded.derived(from: .plain, decoder, reading.outcome)
        if decoded.isProtected, !wasOpened, decoded.row.body.count > 2 {
            decoded.isSuccess = decoded.row.body.suffix(2).elementsEqual([0x90, 0x00])
            decoded.summary = decoded.opening == .failed ? "not opened" : "sealed"
            return
        }
        if let view = pending?.view, !view.isSealed {
            if let whole = cards[card].files.push(view, data: data, status: word, packet: decoded.row.packetID, index) {
                decoded.summary = "\(whole.text) whole"
                if wantsFields { decoded.file = file(whole) }
            } else {
                decoded.summary = index.answer(data: data, status: word, to: view.ins)
            }
        } else {
            decoded.summary = index.answer(data: data, status: word, to: pending?.view?.ins)
        }
        if !showsSecrets, !data.isEmpty, index.hasSecret(decoder, reading.outcome) { decoded.summary = "<sealed>" }
        if reading.hasAgreed {
            decoded.summary = "keys agreed"
            // The counter belongs to what comes next.
            decoded.counters = []
        }
    }

    /// What a whole file holds, as its grammar tells.
    mutating func file(_ whole: FileTracker.Whole) -> DecodedFile {
        var file = DecodedFile(name: whole.text, octets: whole.octets, exchanges: whole.exchanges, fields: [])
        guard let entry = index.program.entry(named: FileTracker.message(whole.grammar, whole.name)) else { return file }
        var single = Decoder(index.program)
        let outcome = single.push(request: whole.octets, entry: entry)
        file.fields = reader.fields(single, outcome, FieldReader.Cover(showsSecrets: showsSecrets)).fields
        return file
    }

    private mutating func plainView(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ reader: Int) {
        let card = card(.plain(reader))
        decoded.grammar = "iso7816"
        if decoded.row.direction == .received { response(&decoded, places, card) } else { command(&decoded, places, card) }
        if decoded.summary.isEmpty { decoded.summary = "\(decoded.row.body.count) bytes, derived" }
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
            for card in cards.indices where isOf(reader, channels[card]) { _ = cards[card].reset(event.name) }
        case .error:
            if let card = channels.firstIndex(of: .apdu(reader)) { cards[card].pending = nil }
        default: break
        }
    }

    private func isOf(_ reader: Int, _ channel: Channel) -> Bool {
        switch channel {
        case .apdu(let number), .plain(let number): number == reader
        case .rf(let interface): interfaces.indices.contains(interface) && interfaces[interface].kind.readerNumber == reader
        case .calls: false
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
        if case .return(let row) = meta {
            decoded.summary = "\(calls.name(of: row.call) ?? "call \(row.call)"): \(decoded.summary)"
        }
        guard let event = calls.push(meta, time: decoded.row.time), !index.program.sessions.isEmpty else { return }
        let card = card(.calls)
        switch event {
        case .seen(let machine, let state): cards[card].decoder.observe(session: machine, state: state)
        case .happened(let name, let isSuccess, let error, let values):
            let outcome = cards[card].decoder.push(
                event: name, isSuccess: isSuccess, error: error, values: values,
                exchange: Int(clamping: decoded.row.packetID ?? 0))
            take(&decoded, cards[card].decoder, outcome, FieldReader.Cover(showsSecrets: showsSecrets))
            if decoded.grammar.isEmpty, !decoded.annotations.isEmpty {
                decoded.grammar = index.program.sessions.first { $0.events.contains(name) }?.grammar ?? ""
            }
        }
    }
}
