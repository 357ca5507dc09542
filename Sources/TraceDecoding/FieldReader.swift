// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

/// Makes the fields of a row from the spans of its frame.
struct FieldReader: Sendable {
    /// What is sealed in the frame, and whether it is shown all the same.
    struct Cover {
        /// Places of the frame whose octets stand for a secret.
        var places: [Range<Int>] = []
        var showsSecrets = false
        /// The field whose octets are part of a secret that only the whole shows; -1 when there is none.
        var part = -1
    }

    private let program: Program
    /// Paths by node, made when they are first asked for.
    private var paths: [String?]
    /// Of nodes that every grammar has, by the node around them.
    private var hanging: [Int: String] = [:]
    private let isSecret: [Bool]

    init(_ program: Program) {
        self.program = program
        paths = [String?](repeating: nil, count: program.nodes.count)
        isSecret = program.nodes.map { $0.flags.contains(.secret) }
    }

    /// The fields of one push, and the number of each span's field; fields of data objects stand behind their heads.
    mutating func fields(_ decoder: Decoder, _ outcome: Decoder.Outcome, _ cover: Cover) -> (
        fields: [DecodedField], ofSpan: FieldPlaces
    ) {
        let spans = outcome.spans
        let hidden = hiddenSpans(decoder, outcome, cover)
        var fields: [DecodedField] = []
        var ofSpan = FieldPlaces(spans)
        var depths = [Int](repeating: 0, count: spans.count)
        var merged: Int?
        fields.reserveCapacity(spans.count)
        for span in spans {
            let here = decoder.spans[span]
            let parent = Int(here.parent)
            let depth = spans.contains(parent) ? depths[parent - spans.lowerBound] : 0
            let node = program.nodes[Int(here.node)]
            depths[span - spans.lowerBound] = depth
            let isPassedOver: Bool =
                switch node.kind {
                case .root, .alternative: true
                case .value: span == merged
                default: node.flags.contains(.unnamed) || span == merged
                }
            let buffer = Int(here.buffer) - outcome.buffers.lowerBound
            guard !isPassedOver, buffer >= 0 else {
                if span == merged { ofSpan[span] = ofSpan[parent] }
                continue
            }
            depths[span - spans.lowerBound] = depth + 1
            var field = DecodedField(
                path: path(decoder, span), value: .octets([]), text: "", buffer: buffer,
                start: Int(here.startBit), bits: Int(here.bitCount)
            )
            field.depth = depth
            field.label = decoder.label(of: span)
            field.isNonce = node.flags.contains(.nonce)
            field.isSealed = hidden.contains(span)
            var source = span
            switch node.kind {
            case .header: field.shape = .header
            case .gap, .filler: field.shape = .gap
            case .tag, .unknownTag:
                // The head has a field of its own, so this one is the value.
                let head = headBits(decoder, span, spans)
                field.start += head
                field.bits -= head
                if let only = onlyChild(decoder, span, spans) {
                    merged = only
                    source = only
                    field.isSealed = hidden.contains(only)
                    if program.nodes[Int(decoder.spans[only].node)].flags.contains(.nonce) { field.isNonce = true }
                } else {
                    field.shape = .composite
                }
            default: field.shape = decoder.isComposite(span) ? .composite : .leaf
            }
            fill(&field, decoder, source)
            if field.shape == .header, let last = fields.indices.last, ofSpan[parent] == last {
                // A head before the value that it belongs to.
                fields.insert(field, at: last)
                ofSpan[parent] = last + 1
                ofSpan[span] = last
            } else {
                ofSpan[span] = fields.count
                fields.append(field)
            }
        }
        order(&fields, &ofSpan)
        return (fields, ofSpan)
    }

    /// Fields in the order of their octets, each before those that lie in it; what a layer or a refinement found stands where it is.
    private func order(_ fields: inout [DecodedField], _ ofSpan: inout FieldPlaces) {
        // Buffer, place and depth in one number, the field's own number last.
        var keys = fields.indices.map { number in
            let field = fields[number]
            return UInt64(field.buffer & 0x3FF) << 54 | UInt64(field.start & 0x3FFF_FFFF) << 24
                | UInt64(min(field.depth, 0xFF)) << 16 | UInt64(number & 0xFFFF)
        }
        guard fields.count <= 0xFFFF, zip(keys, keys.dropFirst()).contains(where: { $0 > $1 }) else { return }
        keys.sort()
        var places = [Int](repeating: 0, count: fields.count)
        for (place, key) in keys.enumerated() { places[Int(key & 0xFFFF)] = place }
        fields = keys.map { fields[Int($0 & 0xFFFF)] }
        ofSpan.move(places)
    }

    // MARK: - Values

    private func fill(_ field: inout DecodedField, _ decoder: Decoder, _ span: Int) {
        let here = decoder.spans[span]
        let node = program.nodes[Int(here.node)]
        let count = (field.bits + 7) / 8
        guard !field.isSealed else {
            field.text = "sealed, \(count) bytes"
            return
        }
        switch node.kind {
        case .number, .bit, .bits:
            field.value = .number(here.value)
            field.text = decoder.text(of: span, showingSecrets: true) ?? Hex.encode(decoder.octets(of: span))
            if here.bitCount >= 16, program.enumerationOf(decoder, span) != nil {
                field.text = "\(Hex.encode(decoder.octets(of: span))) \(field.text)"
            }
        case .choice where here.bitCount <= 8 && here.bitCount > 0:
            // A choice over one octet of bits: the octet, and what its bits say.
            let octets = decoder.octets(of: span)
            field.value = .number(octets.reduce(0) { $0 << 8 | UInt64($1) })
            field.text = bitsText(decoder, span)
        default:
            let octets = Array(decoder.octets(of: span).suffix(count))
            field.value = .octets(octets)
            let text = node.kind == .text ? decoder.text(of: span, showingSecrets: true) : nil
            field.text = text ?? (octets.count > 8 ? "\(grouped(octets.count)) bytes" : Hex.encode(octets))
        }
    }

    /// `class 0, secure messaging, header under the MAC`: the first group of bits as a number, then what is set.
    private func bitsText(_ decoder: Decoder, _ span: Int) -> String {
        var parts: [String] = []
        var index = span + 1
        var isFirst = true
        while index < decoder.spans.count, decoder.spans[index].parent >= Int32(truncatingIfNeeded: span) {
            let here = decoder.spans[index]
            defer { index += 1 }
            guard program.nodes[Int(here.node)].kind == .bit || program.nodes[Int(here.node)].kind == .number else { continue }
            if isFirst {
                parts.append("\(decoder.label(of: span)) \(String(here.value, radix: 16, uppercase: true))")
                isFirst = false
            } else if here.value != 0 {
                let isNamed = program.nodes[Int(here.node)].enumeration >= 0
                let text = decoder.text(of: index) ?? ""
                parts.append(
                    isNamed ? text : here.bitCount == 1 ? decoder.label(of: index) : "\(decoder.label(of: index)) \(text)")
            }
        }
        return parts.joined(separator: ", ")
    }

    // MARK: - Spans

    mutating func path(_ decoder: Decoder, _ span: Int) -> String {
        let node = Int(decoder.spans[span].node)
        if node <= Int(Node.value) {
            // A fixed node hangs on the span around it.
            let parent = Int(decoder.spans[span].parent)
            guard parent >= 0, decoder.spans[parent].node > Node.value else { return decoder.path(of: span) }
            let key = Int(decoder.spans[parent].node) << 3 | node
            if let path = hanging[key] { return path }
            let path = decoder.path(of: span)
            hanging[key] = path
            return path
        }
        if let path = paths[node] { return path }
        let path = program.path(node)
        paths[node] = path
        return path
    }

    private func headBits(_ decoder: Decoder, _ span: Int, _ spans: Range<Int>) -> Int {
        guard span + 1 < spans.upperBound, Int(decoder.spans[span + 1].parent) == span,
            decoder.spans[span + 1].node == Node.header
        else { return 0 }
        return Int(decoder.spans[span + 1].bitCount)
    }

    /// The leaf that is the whole value of the data object `span`.
    private func onlyChild(_ decoder: Decoder, _ span: Int, _ spans: Range<Int>) -> Int? {
        let child = span + 2
        guard child < spans.upperBound, Int(decoder.spans[child].parent) == span, !decoder.isComposite(child) else { return nil }
        let node = program.nodes[Int(decoder.spans[child].node)]
        return node.kind == .value || node.flags.contains(.unnamed) ? child : nil
    }

    /// Spans whose octets are not shown: secrets, what lies over a sealed place, what was made from a frame with one, and
    /// what holds any of these.
    private func hiddenSpans(_ decoder: Decoder, _ outcome: Decoder.Outcome, _ cover: Cover) -> Set<Int> {
        var hidden: Set<Int> = []
        guard !cover.showsSecrets else { return hidden }
        for span in outcome.spans {
            let here = decoder.spans[span]
            if isSecret[Int(here.node)] { hidden.insert(span) }
            guard !cover.places.isEmpty else { continue }
            if Int(here.buffer) == outcome.buffers.lowerBound {
                let start = here.start
                let end = max(start + 1, (Int(here.startBit) + Int(here.bitCount) + 7) / 8)
                if here.bitCount > 0, cover.places.contains(where: { $0.overlaps(start..<end) }) { hidden.insert(span) }
            } else if here.count > 1, !decoder.isComposite(span) {
                hidden.insert(span)
            }
        }
        if cover.part >= 0,
            let part = outcome.spans.last(where: { Int(program.nodes[Int(decoder.spans[$0].node)].slot) == cover.part })
        {
            hidden.insert(part)
        }
        guard !hidden.isEmpty else { return hidden }
        for span in outcome.spans.reversed() where hidden.contains(span) {
            let parent = Int(decoder.spans[span].parent)
            if outcome.spans.contains(parent) { hidden.insert(parent) }
        }
        return hidden
    }

    /// What was made from the frame of one push, in order.
    func derived(_ decoder: Decoder, _ outcome: Decoder.Outcome, _ cover: Cover) -> [DerivedBuffer] {
        guard outcome.buffers.count > 1 else { return [] }
        let hidden = hiddenSpans(decoder, outcome, cover)
        let closed = Set(hidden.map { Int(decoder.spans[$0].buffer) })
        return outcome.buffers.dropFirst().map { number in
            let buffer = decoder.buffers[number]
            let isHidden = closed.contains(number) || (!cover.showsSecrets && !cover.places.isEmpty)
            return DerivedBuffer(
                number: number - outcome.buffers.lowerBound, origin: DerivedBuffer.Origin(buffer.origin),
                octets: isHidden ? [] : decoder.octets(ofBuffer: number), count: buffer.count, isRequest: buffer.isRequest
            )
        }
    }
}

/// The number of the field that each span of a push became.
struct FieldPlaces {
    private let first: Int
    private var places: [Int]

    init(_ spans: Range<Int> = 0..<0) {
        first = spans.lowerBound
        places = [Int](repeating: -1, count: spans.count)
    }

    subscript(_ span: Int) -> Int? {
        get {
            let place = places.indices.contains(span - first) ? places[span - first] : -1
            return place >= 0 ? place : nil
        }
        set { if places.indices.contains(span - first) { places[span - first] = newValue ?? -1 } }
    }

    /// The fields were put into another order.
    mutating func move(_ order: [Int]) {
        for index in places.indices where places[index] >= 0 { places[index] = order[places[index]] }
    }
}

extension DerivedBuffer.Origin {
    init(_ origin: DecodedBuffer.Origin) {
        self =
            switch origin {
            case .frame, .plain: .plain
            case .opened: .opened
            case .gathered: .gathered
            case .remembered: .remembered
            case .unwrapped: .unwrapped
            }
    }
}

extension Program {
    /// The enumeration that names the value of a span; a refinement may have given it another.
    fileprivate func enumerationOf(_ decoder: Decoder, _ span: Int) -> Int? {
        let here = decoder.spans[span]
        if here.flags.contains(.refined), let touched = decoder.machine.touched.last(where: { $0.span == Int32(span) }) {
            return touched.enumeration
        }
        let number = Int(nodes[Int(here.node)].enumeration)
        return number >= 0 ? number : nil
    }
}
