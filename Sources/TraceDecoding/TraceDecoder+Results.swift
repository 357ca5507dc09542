// SPDX-License-Identifier: MIT

import GrammarRuntime
import TraceFile

/// What every row gets from what the grammars' machine found.
extension TraceDecoder {
    mutating func take(
        _ decoded: inout DecodedRow, _ decoder: Decoder, _ outcome: Decoder.Outcome, _ cover: FieldReader.Cover
    ) {
        var ofSpan = FieldPlaces()
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
        let found = decoder.annotations[outcome.annotations]
        for annotation in found {
            // What held and what has no key is for those who look at fields.
            if !wantsFields, annotation.code == .held || annotation.code == .sealed { continue }
            // A code that is right for another counter says more than that something may be missing.
            if annotation.code == .lost, found.contains(where: { $0.nearMiss != nil && $0.place == annotation.place }) {
                continue
            }
            decoded.annotations.append(describe(annotation, decoder, outcome, cover, ofSpan))
        }
        if let plain = outcome.buffers.last(where: { decoder.buffers[$0].origin == .plain }), plain != outcome.buffers.lowerBound
        {
            if wantsFields {
                decoded.plain = decoded.derived.first { $0.number == plain - outcome.buffers.lowerBound }.flatMap {
                    $0.octets.isEmpty ? nil : $0.octets
                }
            } else if cover.showsSecrets || (cover.places.isEmpty && cover.part < 0) {
                decoded.plain = decoder.octets(ofBuffer: plain)
            }
        }
    }

    private mutating func describe(
        _ annotation: GrammarRuntime.Annotation, _ decoder: Decoder, _ outcome: Decoder.Outcome, _ cover: FieldReader.Cover,
        _ ofSpan: FieldPlaces
    ) -> Annotation {
        var shown = annotation
        // The two values of a code under a key are for those who look at fields; sealed ones are not shown.
        let isAuthentication = index.authentications.contains(annotation.check)
        let isCovered = !cover.places.isEmpty && !cover.showsSecrets
        if isAuthentication || isCovered { (shown.expected, shown.actual) = (nil, nil) }
        var result = Annotation(
            code: annotation.code.rawValue, severity: Annotation.Severity(rawValue: annotation.severity.name) ?? .note,
            text: decoder.text(of: shown), blame: annotation.blame.flatMap { Annotation.Blame(rawValue: $0.rawValue) },
            see: annotation.see.map { UInt64(clamping: $0) }
        )
        if annotation.span >= 0 {
            result.path = reader.path(decoder, Int(annotation.span))
            result.field = ofSpan[Int(annotation.span)]
        } else if annotation.check >= 0, index.program.checks[Int(annotation.check)].slot >= 0,
            let node = index.program.slotNodes[index.program.checks[Int(annotation.check)].slot].first
        {
            result.path = index.program.path(node)
        }
        if annotation.check >= 0, index.program.files.indices.contains(annotation.place.file) {
            result.rule = "\(index.program.files[annotation.place.file]):\(annotation.place.line)"
        }
        result.isAuthentication = isAuthentication
        if isAuthentication {
            result.near = annotation.nearMiss
            if !isCovered { (result.sent, result.expected) = (annotation.actual, annotation.expected) }
        }
        return result
    }

    /// How a protected message stands, and the counters of what protects it.
    func judge(_ decoded: inout DecodedRow, _ decoder: Decoder, _ outcome: Decoder.Outcome) {
        let annotations = decoder.annotations[outcome.annotations]
        let hasOpened = outcome.buffers.dropFirst().contains {
            decoder.buffers[$0].origin == .plain || decoder.buffers[$0].origin == .opened
        }
        if annotations.contains(where: { $0.code == .failed && $0.severity == .error }) {
            decoded.opening = .failed
        } else if annotations.contains(where: { $0.code == .sealed }), index.hasChannel(decoder.machine.state.layers) {
            // The class of a wrapped command does not say that it is protected.
            decoded.opening = .sealed
            decoded.isProtected = true
        } else if hasOpened {
            decoded.opening = .opened
        } else if annotations.contains(where: { $0.code == .sealed }) || (decoded.isProtected && decoded.row.body.count > 2) {
            decoded.opening = .sealed
        }
        guard wantsFields, hasOpened else { return }
        for layer in decoder.machine.state.layers {
            for parameter in index.program.layers[layer].parameters where index.program.variables[parameter].isCounter {
                guard case .octets(let octets) = decoder.machine.state.variables[parameter].value else { continue }
                decoded.counters.append((index.program.strings[index.program.variables[parameter].name].uppercased(), octets))
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
