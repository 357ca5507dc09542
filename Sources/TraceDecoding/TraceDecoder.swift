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

    private let secrets: SecretStore
    private let showsSecrets: Bool
    private let index: GrammarIndex
    private let keys: KeyTable
    private var interfaces: [TraceInterface]
    private var reader: FieldReader
    private var cards: [Channel: CardReading] = [:]
    private var calls = CallEvents()

    /// What a decoder of the grammars belongs to.
    private enum Channel: Hashable {
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
    public var authentication: (checked: Int, held: Int) { cards.values.reduce((0, 0)) { ($0.0 + $1.checked, $0.1 + $1.held) } }

    public mutating func push(_ row: TraceRow) -> DecodedRow {
        let kind = interfaces.indices.contains(row.interface) ? interfaces[row.interface].kind : .other("")
        let places = SealedPlaces(row: row, secrets: secrets)
        var decoded = DecodedRow(row: row, interface: kind, kind: .frame)
        decoded.sealed = places.places
        switch kind {
        // A frame that went to a card of ISO/IEC 7816-4 stands among its commands and is none.
        case .apdu where row.dissector == "data": frame(&decoded, places)
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

    private func newCard() -> CardReading { CardReading(index, keys, triesNearMisses: triesNearMisses) }

    private mutating func apdu(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ channel: Channel) {
        decoded.grammar = "iso7816"
        if cards[channel] == nil { cards[channel] = newCard() }
        if decoded.row.direction == .received {
            let first = decoded.row.body.first
            if first == 0x3B || first == 0x3F,
                cards[channel]?.pending?.packet != decoded.row.packetID || cards[channel]?.pending == nil
            {
                answerToReset(&decoded)
                return
            }
            response(&decoded, places, channel)
        } else {
            command(&decoded, places, channel)
        }
        sessions(&decoded, channel)
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

    private mutating func command(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ channel: Channel) {
        decoded.kind = .command
        decoded.message = "command"
        decoded.isProtected = isProtected(class: places.octets.first)
        guard index.command >= 0,
            let reading = cards[channel]?.push(request: places.octets, entry: index.command, packet: decoded.row.packetID)
        else { return }
        cards[channel]?.pending = nil
        finishCommand(&decoded, reading, channel, FieldReader.Cover(places: places.places, showsSecrets: showsSecrets))
    }

    private mutating func finishCommand(
        _ decoded: inout DecodedRow, _ reading: CardReading.Reading, _ channel: Channel, _ cover: FieldReader.Cover
    ) {
        guard let card = cards[channel] else { return }
        take(&decoded, card.decoder, reading.outcome, cover)
        judge(&decoded, card.decoder, reading.outcome)
        let isSealed = decoded.isProtected && decoded.opening == .sealed
        let view = CommandView(card.decoder, index, isSealed: isSealed)
        if let view {
            decoded.summary =
                index.wrapped(card.decoder, reading.exchange)
                ?? index.headline(view, exchange: reading.exchange, in: card.files.place)
            if view.ins == 0xB0, view.p1 & 0x80 == 0, let ne = view.ne, !isSealed, view.cla != 0xFF {
                decoded.read = ReadPlace(offset: view.offset, length: ne)
                decoded.fileName = card.files.name
            }
        } else {
            decoded.summary = "malformed command, \(decoded.row.body.count) bytes"
        }
        cards[channel]?.pending = CardReading.Pending(
            packet: decoded.row.packetID, exchange: reading.exchange, view: view, isProtected: decoded.isProtected)
    }

    private mutating func response(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ channel: Channel) {
        decoded.kind = .response
        decoded.message = "response"
        let pending = cards[channel]?.pending
        let isPaired = pending != nil && (pending?.packet == decoded.row.packetID || pending?.packet == nil)
        if !isPaired { cards[channel]?.decoder.machine.state.pending = nil }
        cards[channel]?.pending = nil
        guard index.response >= 0,
            let reading = cards[channel]?.push(response: places.octets, entry: index.response, packet: decoded.row.packetID)
        else { return }
        finishResponse(
            &decoded, reading, isPaired ? pending : nil, channel,
            FieldReader.Cover(places: places.places, showsSecrets: showsSecrets))
    }

    private mutating func finishResponse(
        _ decoded: inout DecodedRow, _ reading: CardReading.Reading, _ pending: CardReading.Pending?, _ channel: Channel,
        _ cover: FieldReader.Cover
    ) {
        guard let card = cards[channel] else { return }
        decoded.isProtected = pending?.isProtected ?? false
        take(&decoded, card.decoder, reading.outcome, cover)
        judge(&decoded, card.decoder, reading.outcome)
        guard let sw = card.decoder.span(index.statusWord), reading.outcome.spans.contains(sw),
            card.decoder.spans[sw].bitCount == 16
        else {
            decoded.isSuccess = false
            decoded.summary = "malformed answer, \(decoded.row.body.count) bytes"
            return
        }
        let word = UInt16(truncatingIfNeeded: card.decoder.spans[sw].value)
        decoded.isSuccess = word == 0x9000
        let data =
            card.decoder.span(index.responseData).flatMap {
                reading.outcome.spans.contains($0) ? card.decoder.octets(of: $0) : nil
            } ?? []
        let wasOpened = decoded.derived(from: .plain, card.decoder, reading.outcome)
        if decoded.isProtected, !wasOpened, decoded.row.body.count > 2 {
            decoded.isSuccess = decoded.row.body.suffix(2).elementsEqual([0x90, 0x00])
            decoded.summary = decoded.opening == .failed ? "not opened" : "sealed"
            return
        }
        if let view = pending?.view, !view.isSealed {
            if let whole = cards[channel]?.files.push(view, data: data, status: word, packet: decoded.row.packetID, index) {
                decoded.summary = "\(whole.text) whole"
                if wantsFields { decoded.file = file(whole) }
            } else {
                decoded.summary = index.answer(data: data, status: word, to: view.ins)
            }
        } else {
            decoded.summary = index.answer(data: data, status: word, to: pending?.view?.ins)
        }
        if reading.hasAgreed {
            decoded.summary = "keys agreed"
            // The counter belongs to what comes next.
            decoded.counters = []
        }
    }

    /// What a whole file holds, as its grammar tells.
    private mutating func file(_ whole: FileTracker.Whole) -> DecodedFile {
        var file = DecodedFile(name: whole.text, octets: whole.octets, exchanges: whole.exchanges, fields: [])
        let message = whole.name.prefix(1).uppercased() + whole.name.dropFirst()
        guard let entry = index.program.entry(named: "\(whole.grammar).\(message)") else { return file }
        var single = Decoder(index.program)
        let outcome = single.push(request: whole.octets, entry: entry)
        file.fields = reader.fields(single, outcome, FieldReader.Cover(showsSecrets: showsSecrets)).fields
        return file
    }

    private mutating func plainView(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ reader: Int) {
        let channel = Channel.plain(reader)
        if cards[channel] == nil { cards[channel] = newCard() }
        decoded.grammar = "iso7816"
        if decoded.row.direction == .received { response(&decoded, places, channel) } else { command(&decoded, places, channel) }
        if decoded.summary.isEmpty { decoded.summary = "\(decoded.row.body.count) bytes, derived" }
    }

    // MARK: - Frames

    private mutating func frame(_ decoded: inout DecodedRow, _ places: SealedPlaces) {
        decoded.kind = .frame
        let protocolText = decoded.row.protocolText ?? decoded.row.dissector
        decoded.grammar = decoded.row.dissector
        // Link type 264 puts four octets before a frame: version, event, length.
        let shown = decoded.row.body.dropFirst(decoded.row.dissector == "iso14443" && decoded.row.body.count >= 4 ? 4 : 0)
        let room = max(4, 18 - protocolText.utf8.count / 2)
        decoded.summary = "\(protocolText) \(Hex.encode(shown.prefix(room)))\(shown.count > room ? "..." : "")"
        decoded.answer = shown.count > 7 ? "\(Hex.encode(shown.prefix(5)))..." : Hex.encode(shown)
        guard let entries = index.frame(decoded.row.dissector) else { return }
        let channel = Channel.rf(decoded.row.interface)
        if cards[channel] == nil { cards[channel] = newCard() }
        carried(
            &decoded, places.octets, decoded.row.direction == .received ? entries.response : entries.request, channel,
            FieldReader.Cover(places: places.places, showsSecrets: showsSecrets))
    }

    private mutating func carried(
        _ decoded: inout DecodedRow, _ body: [UInt8], _ entry: Int, _ channel: Channel, _ cover: FieldReader.Cover
    ) {
        let isAnswer = decoded.row.direction == .received
        let pending = isAnswer ? cards[channel]?.pending : nil
        let reading =
            isAnswer
            ? cards[channel]?.push(response: body, entry: entry, packet: decoded.row.packetID)
            : cards[channel]?.push(request: body, entry: entry, packet: decoded.row.packetID)
        guard let reading, let card = cards[channel] else { return }
        decoded.message = index.program.roots[entry].name.split(separator: ".").last.map { $0.lowercased() } ?? ""
        take(&decoded, card.decoder, reading.outcome, cover)
        judge(&decoded, card.decoder, reading.outcome)
        if isAnswer {
            guard let sw = card.decoder.span(index.statusWord), reading.outcome.spans.contains(sw),
                card.decoder.spans[sw].bitCount == 16
            else {
                if let text = index.named(card.decoder, reading, isRequest: false) { decoded.answer = text }
                return
            }
            let word = UInt16(truncatingIfNeeded: card.decoder.spans[sw].value)
            let data = card.decoder.octets(inSlot: index.responseData) ?? []
            cards[channel]?.pending = nil
            decoded.answer = index.answer(data: data, status: word, to: pending?.view?.ins)
            if let view = pending?.view,
                let whole = cards[channel]?.files.push(view, data: data, status: word, packet: decoded.row.packetID, index)
            {
                decoded.answer = "\(whole.text) whole"
                if wantsFields { decoded.file = file(whole) }
            }
            if reading.hasAgreed { decoded.answer = "keys agreed" }
        } else if let ins = card.decoder.span(index.commandFields.ins), reading.outcome.spans.contains(ins),
            let view = CommandView(card.decoder, index, isSealed: decoded.opening == .sealed),
            !decoded.annotations.contains(where: { $0.severity == .error && $0.path?.hasPrefix("iso7816.command") == true })
        {
            decoded.summary = index.headline(view, exchange: reading.exchange, in: card.files.place)
            cards[channel]?.pending = CardReading.Pending(
                packet: decoded.row.packetID, exchange: reading.exchange, view: view, isProtected: decoded.isProtected)
        } else if let text = index.named(card.decoder, reading, isRequest: true) ?? kindOfFrame(card.decoder, reading.outcome) {
            decoded.summary = text
        }
        sessions(&decoded, channel)
    }

    /// What the grammar calls the frame: the label of its exchange. One that stands for many is left as octets.
    private func kindOfFrame(_ decoder: Decoder, _ outcome: Decoder.Outcome) -> String? {
        guard let number = outcome.exchange, let name = decoder.exchangeName(number), name.name != "OTHER", name.name != "BLOCK"
        else {
            return nil
        }
        return name.label
    }

    // MARK: - What every decoded row gets

    private mutating func take(
        _ decoded: inout DecodedRow, _ decoder: Decoder, _ outcome: Decoder.Outcome, _ cover: FieldReader.Cover
    ) {
        var ofSpan: [Int: Int] = [:]
        if wantsFields {
            let read = reader.fields(decoder, outcome, cover)
            decoded.fields = read.fields
            ofSpan = read.ofSpan
            decoded.derived = reader.derived(decoder, outcome, cover)
        }
        if let number = outcome.exchange, let name = decoder.exchangeName(number) {
            decoded.grammar = name.grammar
            decoded.message = name.name
        }
        for annotation in decoder.annotations[outcome.annotations] {
            decoded.annotations.append(describe(annotation, decoder, outcome, cover, ofSpan))
        }
        if let plain = outcome.buffers.last(where: { decoder.buffers[$0].origin == .plain }), plain != outcome.buffers.lowerBound
        {
            if wantsFields {
                decoded.plain = decoded.derived.first { $0.number == plain - outcome.buffers.lowerBound }.flatMap {
                    $0.octets.isEmpty ? nil : $0.octets
                }
            } else if cover.showsSecrets || cover.places.isEmpty {
                decoded.plain = decoder.octets(ofBuffer: plain)
            }
        }
    }

    private func describe(
        _ annotation: GrammarRuntime.Annotation, _ decoder: Decoder, _ outcome: Decoder.Outcome, _ cover: FieldReader.Cover,
        _ ofSpan: [Int: Int]
    ) -> Annotation {
        var shown = annotation
        if !cover.places.isEmpty, !cover.showsSecrets { (shown.expected, shown.actual) = (nil, nil) }
        var result = Annotation(
            code: annotation.code.rawValue, severity: Annotation.Severity(rawValue: annotation.severity.name) ?? .note,
            text: decoder.text(of: shown), blame: annotation.blame.flatMap { Annotation.Blame(rawValue: $0.rawValue) },
            see: annotation.see.map { UInt64(clamping: $0) }
        )
        if annotation.span >= 0 {
            result.path = decoder.path(of: Int(annotation.span))
            result.field = ofSpan[Int(annotation.span)]
        } else if annotation.check >= 0, index.program.checks[Int(annotation.check)].slot >= 0,
            let node = index.program.slotNodes[index.program.checks[Int(annotation.check)].slot].first
        {
            result.path = index.program.path(node)
        }
        if annotation.check >= 0, index.program.files.indices.contains(annotation.place.file) {
            result.rule = "\(index.program.files[annotation.place.file]):\(annotation.place.line)"
        }
        result.isAuthentication = index.authentications.contains(annotation.check)
        return result
    }

    /// How a protected message stands, and the counters of what protects it.
    private func judge(_ decoded: inout DecodedRow, _ decoder: Decoder, _ outcome: Decoder.Outcome) {
        let annotations = decoder.annotations[outcome.annotations]
        let hasOpened = outcome.buffers.dropFirst().contains {
            decoder.buffers[$0].origin == .plain || decoder.buffers[$0].origin == .opened
        }
        if annotations.contains(where: { $0.code == .failed && $0.severity == .error }) {
            decoded.opening = .failed
        } else if hasOpened {
            decoded.opening = .opened
        } else if annotations.contains(where: { $0.code == .sealed }) || (decoded.isProtected && decoded.row.body.count > 2) {
            decoded.opening = .sealed
        }
        guard wantsFields, hasOpened else { return }
        for layer in decoder.state.layers {
            for parameter in index.program.layers[layer].parameters where !index.program.variables[parameter].isTainted {
                guard case .octets(let octets) = decoder.state.variables[parameter].value else { continue }
                decoded.counters.append((index.program.strings[index.program.variables[parameter].name].uppercased(), octets))
            }
        }
    }

    private func sessions(_ decoded: inout DecodedRow, _ channel: Channel) {
        guard let decoder = cards[channel]?.decoder else { return }
        for (number, session) in index.program.sessions.enumerated() where decoder.state.sessions[number] != session.initial {
            decoded.sessions.append((session.name, session.states[decoder.state.sessions[number]]))
        }
        for layer in decoder.state.layers { decoded.sessions.append((index.program.layers[layer].grammar, "open")) }
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
            for channel in cards.keys where isOf(reader, channel) { _ = cards[channel]?.reset(event.name) }
        case .error:
            cards[.apdu(reader)]?.pending = nil
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
        if cards[.calls] == nil { cards[.calls] = newCard() }
        switch event {
        case .seen(let machine, let state): cards[.calls]?.decoder.observe(session: machine, state: state)
        case .happened(let name, let isSuccess, let error, let values):
            guard
                let outcome = cards[.calls]?.decoder.push(
                    event: name, isSuccess: isSuccess, error: error, values: values,
                    exchange: Int(clamping: decoded.row.packetID ?? 0))
            else { return }
            if let card = cards[.calls] { take(&decoded, card.decoder, outcome, FieldReader.Cover(showsSecrets: showsSecrets)) }
            if decoded.grammar.isEmpty, !decoded.annotations.isEmpty {
                decoded.grammar = index.program.sessions.first { $0.events.contains(name) }?.grammar ?? ""
            }
        }
    }
}

extension DecodedRow {
    /// Whether a push gave a buffer of this origin.
    func derived(from origin: DecodedBuffer.Origin, _ decoder: Decoder, _ outcome: Decoder.Outcome) -> Bool {
        outcome.buffers.dropFirst().contains { decoder.buffers[$0].origin == origin }
    }
}
