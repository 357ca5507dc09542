// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets
import TraceFile

/// Frames on the air, and the APDUs that blocks carry.
extension TraceDecoder {
    mutating func frame(_ decoded: inout DecodedRow, _ places: SealedPlaces) {
        decoded.kind = .frame
        let protocolText = decoded.row.protocolText ?? decoded.row.dissector
        decoded.grammar = decoded.row.dissector
        // Link type 264 puts four octets before a frame: version, event, length.
        let shown = decoded.row.body.dropFirst(decoded.row.dissector == "iso14443" && decoded.row.body.count >= 4 ? 4 : 0)
        let room = max(4, 18 - protocolText.utf8.count / 2)
        decoded.summary = "\(protocolText) \(Hex.encode(shown.prefix(room)))\(shown.count > room ? "..." : "")"
        // Whatever carried it, there was nothing in it: no name from the frame before.
        if shown.isEmpty { decoded.summary = "\(protocolText), empty frame" }
        decoded.answer = shown.count > 7 ? "\(Hex.encode(shown.prefix(5)))..." : Hex.encode(shown)
        guard let entries = index.frame(decoded.row.dissector) else { return }
        carried(
            &decoded, places.octets, decoded.row.direction == .received ? entries.response : entries.request,
            card(.rf(decoded.row.interface)),
            FieldReader.Cover(places: places.places, showsSecrets: showsSecrets))
    }

    /// A frame to a card that is otherwise spoken to by APDUs: DESFire's commands as they are, or octets.
    ///
    /// No APDU is shorter than four octets. A native session begins with a command that is, or with the selection of an application,
    /// whose code is no class; from there on to the next APDU whatever is bare belongs to it.
    mutating func bareFrame(_ decoded: inout DecodedRow, _ places: SealedPlaces, _ channel: Channel) {
        let card = card(channel)
        let body = places.octets
        let isAnswer = decoded.row.direction == .received
        if !isAnswer, body.count < 4 || (body.count == 4 && body[0] == 0x5A) { cards[card].speaksNative = true }
        guard cards[card].speaksNative, let entries = index.frame("desfire"), let first = body.first else {
            return frame(&decoded, places)
        }
        decoded.kind = .frame
        decoded.grammar = "desfire"
        decoded.summary = Hex.encode(body)
        carried(
            &decoded, body, isAnswer ? entries.response : entries.request, card,
            FieldReader.Cover(places: places.places, showsSecrets: showsSecrets))
        guard isAnswer else { return }
        decoded.isSuccess = first == 0 || first == 0xAF
        guard decoded.answer != "keys agreed" else { return }
        let inner = cards[card].decoder.octets(inSlot: index.carriedData)
        decoded.answer =
            inner == nil && decoded.opening == .sealed && first == 0
            ? "sealed" : index.answer(data: inner ?? Array(body.dropFirst()), status: 0x9100 | UInt16(first), to: nil)
    }

    private mutating func carried(
        _ decoded: inout DecodedRow, _ body: [UInt8], _ entry: Int, _ card: Int, _ cover: FieldReader.Cover
    ) {
        let isAnswer = decoded.row.direction == .received
        let pending = isAnswer ? cards[card].pending : nil
        let reading =
            isAnswer
            ? cards[card].push(response: body, entry: entry, packet: decoded.row.packetID)
            : cards[card].push(request: body, entry: entry, packet: decoded.row.packetID)
        let decoder = cards[card].decoder
        decoded.message = index.program.roots[entry].name.split(separator: ".").last.map { $0.lowercased() } ?? ""
        take(&decoded, decoder, reading.outcome, cover)
        judge(&decoded, decoder, reading.outcome)
        if isAnswer {
            guard let sw = decoder.span(index.statusWord), reading.outcome.spans.contains(sw),
                decoder.spans[sw].bitCount == 16
            else {
                if let text = index.named(decoder, reading, isRequest: false) { decoded.answer = text }
                if reading.hasAgreed { decoded.answer = "keys agreed" }
                return
            }
            let word = UInt16(truncatingIfNeeded: decoder.spans[sw].value)
            let inner = decoder.span(index.carriedData).flatMap {
                reading.outcome.spans.contains($0) ? decoder.octets(of: $0) : nil
            }
            let data = inner ?? decoder.octets(inSlot: index.responseData) ?? []
            cards[card].pending = nil
            decoded.answer =
                inner == nil && decoded.opening == .sealed && word == 0x9100
                ? "sealed" : index.answer(data: data, status: word, to: pending?.view?.ins)
            if let view = pending?.view,
                let whole = cards[card].files.push(view, data: data, status: word, packet: decoded.row.packetID, index)
            {
                decoded.answer = "\(whole.text) whole"
                if wantsFields { decoded.file = file(whole) }
            }
            if reading.hasAgreed { decoded.answer = "keys agreed" }
        } else if let ins = decoder.span(index.commandFields.ins), reading.outcome.spans.contains(ins),
            let view = CommandView(decoder, index, isSealed: decoded.opening == .sealed),
            !decoded.annotations.contains(where: { $0.severity == .error && $0.path?.hasPrefix("iso7816.command") == true })
        {
            decoded.summary =
                reading.headline ?? index.headline(view, exchange: reading.exchange, in: cards[card].files.place)
            cards[card].pending = CardReading.Pending(
                packet: decoded.row.packetID, exchange: reading.exchange, view: view, isProtected: decoded.isProtected)
        } else if let text = reading.headline ?? index.named(decoder, reading, isRequest: true)
            ?? kindOfFrame(decoder, reading.outcome)
        {
            decoded.summary = text
        }
        decoded.sessions = cards[card].sessions(index)
    }

    /// What the grammar calls the frame: the label of its exchange. One that stands for many is left as octets.
    private func kindOfFrame(_ decoder: Decoder, _ outcome: Decoder.Outcome) -> String? {
        guard let number = outcome.exchange, let name = decoder.exchangeName(number), name.name != "OTHER", name.name != "BLOCK"
        else {
            return nil
        }
        return name.label
    }
}
