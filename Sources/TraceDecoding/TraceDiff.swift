// SPDX-License-Identifier: MIT

import GrammarLibrary
import Octets
import TraceFile

/// Two traces compared exchange by exchange, exchanges of one kind side by side.
///
/// Compared are the innermost messages that can be read, field by field. What either side drew at random binds on first sight
/// and must recur; what a session makes from it (cryptograms, codes) is compared only where a key opens it.
public struct TraceDiff: Sendable {
    /// One thing that is not the same.
    public struct Difference: Sendable, Equatable {
        public enum Code: String, Sendable {
            /// A field has another value.
            case value
            /// A field is on one side only.
            case field
            /// An exchange is on one side only.
            case exchange
        }

        public var code: Code
        public var path: String
        /// Hexadecimal or a number; nil where it is not there.
        public var left: String?
        public var right: String?
        public var leftPacket: UInt64?
        public var rightPacket: UInt64?
        /// Whether the card answered with another status.
        public var effect: Bool
    }

    /// The two sides of one place in the order of exchanges, with what differs.
    public struct Pair: Sendable {
        public var left: Side?
        public var right: Side?
        public var differences: [Difference]
    }

    /// One exchange as it is shown.
    public struct Side: Sendable {
        public var packet: UInt64
        public var what: String
        public var answer: String
        /// The innermost command that can be read, its sealed places as zeros.
        public var octets: [UInt8]
        /// `no Le`, `Le 28`.
        public var le = ""
        public var isCommand = false
        /// The exchange that this one is asked again for: the same command, or the same with the length that the card named.
        public var retryOf: UInt64?
        var fields: [DecodedField] = []
        var status = ""
        var word: UInt64 = 0
        /// The grammar, where it is more than ISO/IEC 7816-4: `pace`.
        var message = ""
        /// Both sides have keys after this exchange.
        var hasAgreed = false
        /// Codes over what was drawn, by path, that are right under their keys.
        var codes: Set<String> = []
        /// The file that this exchange brought to its end.
        var file: String?

        /// The exchange before it, when this one asks for the same again.
        func retries(_ last: Side) -> UInt64? {
            guard isCommand, last.isCommand, octets.count >= 4, last.octets.count >= 4, last.word != 0x9000 else { return nil }
            let isSame = octets == last.octets
            let isWithRightLength = last.word >> 8 == 0x6C && octets.dropLast() == last.octets.dropLast()
            return isSame || isWithRightLength ? last.packet : nil
        }
    }

    /// What a run of exchanges of one side is: the files it reads, the protocols it runs.
    public static func digest(_ sides: [Side]) -> String { ExchangeDigest(sides).text(beside: nil) }

    public private(set) var pairs: [Pair] = []
    public private(set) var exchanges = (left: 0, right: 0)
    /// Drawn values that recurred as they should.
    public private(set) var boundNonces = 0
    /// Keys that both sides agreed on at the same place.
    public private(set) var boundKeys = 0
    /// Octets that no key opened, so that nothing can be said about them.
    public private(set) var sealed = 0
    /// What each side came to: `PACE, DG1 read`.
    public private(set) var digests = (left: "", right: "")
    private var bound: [[UInt8]: [UInt8]] = [:]

    public var differences: [Difference] { pairs.flatMap(\.differences) }
    public var isSame: Bool { pairs.allSatisfy(\.differences.isEmpty) }

    public init(
        _ left: (trace: Trace, secrets: SecretStore), _ right: (trace: Trace, secrets: SecretStore),
        grammars: GrammarLibrary? = nil
    ) {
        let (lefts, rights) = (Self.sides(left.trace, left.secrets, grammars), Self.sides(right.trace, right.secrets, grammars))
        exchanges = (lefts.count, rights.count)
        let digest = (ExchangeDigest(lefts), ExchangeDigest(rights))
        digests = (digest.0.text(beside: digest.1), digest.1.text(beside: digest.0))
        for (one, other) in SideAlignment.pairs(lefts, rights) {
            let (left, right) = (one.map { lefts[$0] }, other.map { rights[$0] })
            if left?.hasAgreed == true, right?.hasAgreed == true { boundKeys += 2 }
            pairs.append(Pair(left: left, right: right, differences: compare(left, right)))
        }
    }

    private static func sides(_ trace: Trace, _ secrets: SecretStore, _ grammars: GrammarLibrary?) -> [Side] {
        var decoder = TraceDecoder(interfaces: trace.interfaces, secrets: secrets, grammars: grammars)
        decoder.triesNearMisses = true
        decoder.hidesPieces = false
        var groups = ExchangeGroups()
        var sides: [Side] = []
        func take(_ rows: [DecodedRow]) {
            guard var side = side(rows) else { return }
            if let last = sides.last { side.retryOf = side.retries(last) }
            sides.append(side)
        }
        for row in trace.rows {
            let decoded = decoder.push(row)
            if case .plain = decoded.interface { continue }
            groups.push(decoded).forEach(take)
        }
        groups.end().forEach(take)
        return sides
    }

    private static func side(_ rows: [DecodedRow]) -> Side? {
        let rows = rows.filter { $0.kind == .command || $0.kind == .response || $0.kind == .frame }
        guard let first = rows.first else { return nil }
        var side = Side(packet: first.row.packetID ?? 0, what: first.summary, answer: "", octets: first.plain ?? first.row.body)
        side.isCommand = first.kind == .command
        side.le = first.fields.last { $0.path == "iso7816.command.le" }.map { "Le \(hexOf($0))" } ?? "no Le"
        side.message = first.grammar == "iso7816" ? "" : first.grammar
        let isClosed = rows.contains { row in row.opening == .sealed || row.derived.contains { $0.origin == .opened } }
        side.codes = Set(rows.flatMap(\.annotations).filter { $0.isAuthentication && $0.code == "held" }.compactMap(\.path))
        for row in rows {
            side.fields += comparable(row, isClosed)
            guard row.kind == .response || row.row.direction == .received else { continue }
            side.answer = row.summary
            side.hasAgreed = row.summary == "keys agreed"
            side.file = row.file?.name ?? (row.summary.hasSuffix(" whole") ? String(row.summary.dropLast(6)) : nil)
            side.status = row.fields.last { $0.path == "iso7816.response.sw" }?.text ?? ""
            if case .number(let word)? = row.fields.last(where: { $0.path == "iso7816.response.sw" })?.value { side.word = word }
        }
        return side
    }

    private static func hexOf(_ field: DecodedField) -> String {
        switch field.value {
        case .octets(let octets): return Hex.encode(octets)
        case .number(let value):
            let text = String(value, radix: 16, uppercase: true)
            let digits = max(2, field.bits / 4)
            return String(repeating: "0", count: max(0, digits - text.count)) + text
        }
    }

    /// The leaves of what can be read of a row: of the plain message, else of the frame with what was opened from it.
    private static func comparable(_ row: DecodedRow, _ isClosed: Bool) -> [DecodedField] {
        let plain = row.derived.last { $0.origin == .plain }?.number
        return row.fields.compactMap { field in
            guard field.shape == .leaf || field.shape == .gap, field.bits > 0 else { return nil }
            if let plain { return field.buffer == plain ? field : nil }
            var field = field
            // What is made from keys and drawn values says nothing by itself.
            if field.buffer == 0, isClosed, case .octets = field.value { field.isSealed = true }
            return field
        }
    }

    private mutating func compare(_ left: Side?, _ right: Side?) -> [Difference] {
        guard let left, let right else {
            guard let one = left ?? right else { return [] }
            return [
                Difference(
                    code: .exchange, path: "", left: left?.what, right: right?.what, leftPacket: left?.packet,
                    rightPacket: right?.packet,
                    effect: one.status != "")
            ]
        }
        let effect = left.status != right.status
        func difference(_ code: Difference.Code, _ path: String, _ a: DecodedField?, _ b: DecodedField?) -> Difference {
            Difference(
                code: code, path: path, left: a.map(shown), right: b.map(shown), leftPacket: left.packet,
                rightPacket: right.packet,
                effect: effect)
        }
        var result: [Difference] = []
        var paths: [String] = []
        var others: [String: [DecodedField]] = [:]
        var own: [String: [DecodedField]] = [:]
        for field in left.fields {
            if own[field.path] == nil { paths.append(field.path) }
            own[field.path, default: []].append(field)
        }
        for field in right.fields {
            if own[field.path] == nil, others[field.path] == nil { paths.append(field.path) }
            others[field.path, default: []].append(field)
        }
        for path in paths {
            let (a, b) = (own[path] ?? [], others[path] ?? [])
            for number in 0..<max(a.count, b.count) {
                let (one, other) = (number < a.count ? a[number] : nil, number < b.count ? b[number] : nil)
                guard let one, let other else {
                    result.append(difference(.field, path, one, other))
                    continue
                }
                // Another draw has another code; each is right.
                let isRight = left.codes.contains(path) && right.codes.contains(path)
                if isRight, !one.isSealed, !other.isSealed { continue }
                if !isEqual(one, other) { result.append(difference(.value, path, one, other)) }
            }
        }
        // What was asked is the cause of what was answered.
        let isCommand = { (difference: Difference) in difference.path.hasPrefix("iso7816.command") }
        return result.filter(isCommand) + result.filter { !isCommand($0) }
    }

    private mutating func isEqual(_ left: DecodedField, _ right: DecodedField) -> Bool {
        if left.isSealed || right.isSealed {
            if left.isNonce || right.isNonce { return true }
            sealed += 1
            return true
        }
        if case .octets(let a) = left.value, case .octets(let b) = right.value, a.count == b.count {
            if let known = bound[a] {
                if known == b { boundNonces += 1 }
                return known == b
            }
            if left.isNonce, right.isNonce {
                bound[a] = b
                return true
            }
        }
        return left.value == right.value
    }

    private func shown(_ field: DecodedField) -> String {
        switch field.value {
        case .number(let value): "\(value)"
        case .octets(let octets): Hex.encode(octets)
        }
    }
}
