// SPDX-License-Identifier: MIT

import CardCrypto
import Flows
import FoundationEssentials
import Octets
import TagTransport
import TraceDecoding
import TraceFile
import Tracing

/// Compares a finished run with its recording and says where they part, in terms that people can look up in the trace.
struct Comparison {
    let session: RecordedSession
    let trace: Trace
    let secrets: SecretStore
    let call: RecordedSession.Call
    let card: RecordedCard
    let draws: ReplayDraws

    let options: ReplayOptions

    /// Puts the verdict, and what goes with it, into a report.
    func judge(_ result: Result<String?, any Error>, into report: inout ReplayReport) {
        let steps = card.transport.steps
        report.unrecorded = card.guesses.map {
            ReplayReport.Unrecorded(after: $0.after, command: $0.command, answer: $0.answer, policy: $0.policy)
        }
        report.moved = card.moved.map { run in
            ReplayReport.Moved(
                exchanges: steps[run.steps.lowerBound]
                    .packet...max(
                        steps[run.steps.lowerBound].packet, steps[run.steps.upperBound].packet),
                before: steps[run.before].packet)
        }
        report.endsEarly = endsEarly
        report.verdict = endsEarly ? .same : verdict(of: result, &report.skipped)
    }

    private func verdict(of result: Result<String?, any Error>, _ skipped: inout Int) -> ReplayReport.Verdict {
        if let failure = draws.failure { return .differs(draw(failure)) }
        if let difference = card.difference { return .differs(command(difference, result)) }
        let unserved = card.unserved
        if options.unrecorded == .stop, let first = unserved.first { return .differs(missing(unserved, first, result)) }
        skipped = unserved.count { card.transport.steps[$0].isExchange }
        if let divergence = outcome(result) { return .differs(divergence) }
        return .same
    }

    /// A recording whose call never returned cannot be compared past its end, its recorder was killed: it is the same when every whole
    /// exchange that it holds came.
    private var endsEarly: Bool {
        guard call.outcome == nil else { return false }
        let unserved = card.unserved
        guard unserved.isEmpty || isLastUnanswered(unserved) else { return false }
        switch card.difference {
        case .extra, .unanswered, nil: return true
        case .command, .argument, .kind: return false
        }
    }

    private func isLastUnanswered(_ unserved: [Int]) -> Bool {
        guard case .unanswered(let step)? = card.difference else { return false }
        return unserved == [step] && step == card.transport.steps.count - 1
    }

    // MARK: - Kinds of difference

    private func command(_ difference: RecordedCard.Difference, _ result: Result<String?, any Error>) -> Divergence {
        let steps = card.transport.steps
        switch difference {
        case .command(let index, let difference):
            let recorded = difference.recorded
            var divergence = base(.command, at: steps[index], index: index, result)
            divergence.frame = recorded.frame
            divergence.field = field(difference)
            divergence.notes += commandNotes(at: index, recorded: recorded.octets, now: difference.now)
            return divergence
        case .argument(let index, let argument, let now):
            var divergence = base(.command, at: steps[index], index: index, result)
            if case .structured(_, let function, let recorded, _) = steps[index] {
                divergence.field = Divergence.Field(
                    path: "\(function.prefix { $0 != "(" }).\(argument)", place: "",
                    recorded: recorded.text(argument, of: recorded.values),
                    now: recorded.text(argument, of: now)
                )
            }
            return divergence
        case .kind(let index, let now, let octets):
            var divergence = base(.kind, at: steps[index], index: index, result)
            divergence.field = Divergence.Field(
                path: "step", place: "", recorded: divergence.subject, now: octets.map { "\(now): \(name(of: $0))" } ?? now
            )
            return divergence
        case .extra(let octets, let what, let times):
            let kind: Divergence.Kind = times > 0 ? .again(recordedTimes: times) : .extra
            var divergence = base(kind, at: nil, index: steps.count, result)
            // The header alone: what follows it may be a PIN that no recording has sealed.
            divergence.subject =
                octets.map { octets in
                    let rest = max(0, octets.count - 4)
                    return "\(name(of: octets)), \(Hex.encode(octets.prefix(4))) and \(rest) byte\(rest == 1 ? "" : "s")"
                } ?? what
            return divergence
        case .unanswered(let index):
            return base(.unanswered, at: steps[index], index: index, result)
        }
    }

    private func missing(_ unserved: [Int], _ index: Int, _ result: Result<String?, any Error>) -> Divergence {
        let steps = card.transport.steps
        let count = unserved.count { steps[$0].isExchange }
        var divergence = base(.missing(count: count), at: steps[index], index: index, result)
        if index > 0, let last = answerText(steps[index - 1]) {
            divergence.notes.append("the last answer given was \(last)")
        }
        return divergence
    }

    private func draw(_ failure: EnvironmentError) -> Divergence {
        let steps = card.transport.steps
        let index = card.position
        var divergence = base(.draw, at: index < steps.count ? steps[index] : nil, index: index, .failure(failure))
        divergence.notes.append(failure.detail)
        return divergence
    }

    /// The result, when everything before it was the same.
    private func outcome(_ result: Result<String?, any Error>) -> Divergence? {
        guard let recorded = call.outcome else { return nil }
        let steps = card.transport.steps
        func divergence(_ field: Divergence.Field) -> Divergence {
            var divergence = base(.result, at: nil, index: steps.count, result)
            divergence.packet = nil
            divergence.field = field
            return divergence
        }
        switch result {
        case .success(let text):
            if !recorded.ok {
                return divergence(
                    .init(path: "result", place: "", recorded: "threw \(recorded.case ?? "an error")", now: "returned"))
            }
            guard let text, let before = call.result, text != before else { return nil }
            return resultField(recorded: before, now: text).map(divergence)
        case .failure(let error):
            let failure = FlowFailure.describe(error)
            if recorded.ok {
                return divergence(.init(path: "result", place: "", recorded: "returned", now: "threw \(failure.case)"))
            }
            if failure.case != recorded.case || failure.domain != recorded.domain {
                return divergence(
                    .init(
                        path: "result", place: "", recorded: "threw \(recorded.case ?? "an error")", now: "threw \(failure.case)")
                )
            }
            guard let detail = call.errorDetail, detail != failure.detail else { return nil }
            return divergence(.init(path: "result.detail", place: "", recorded: detail, now: failure.detail))
        }
    }

    // MARK: - What is said about it

    private func base(
        _ kind: Divergence.Kind, at step: RecordedSession.Step?, index: Int, _ result: Result<String?, any Error>
    ) -> Divergence {
        let lines = Neighbours(trace: trace, secrets: secrets, grammars: options.grammars)
        let steps = card.transport.steps
        let packet = step?.packet
        var thrown: String?
        if case .failure(let error) = result, card.difference == nil {
            let failure = FlowFailure.describe(error)
            thrown = failure.detail.isEmpty ? failure.case : "\(failure.case): \(failure.detail)"
        }
        return Divergence(
            kind: kind, packet: packet, frame: packet.flatMap(lines.frame),
            sameBefore: steps.prefix(index).count(where: \.isExchange),
            exchanges: steps.count(where: \.isExchange), lastPacket: lines.lastNumber, field: nil,
            before: packet.flatMap(lines.before) ?? lines.last,
            subject: packet.flatMap(lines.line) ?? "after the last exchange", after: packet.flatMap(lines.after), thrown: thrown,
            causes: lines.failures(upTo: packet), notes: []
        )
    }

    /// The first octet that differs, by the field it lies in; or the field that the mode names.
    private func field(_ difference: MatchDifference) -> Divergence.Field {
        let (row, now) = (difference.recorded, difference.now)
        let recorded = row.octets
        let common = zip(recorded, now).prefix { $0 == $1 }.count
        let longest = max(recorded.count, now.count)
        let whole = names.field(at: common, of: common < recorded.count ? recorded : now)
        var (path, range) = whole
        if let named = difference.path, named != path {
            path = named
            range = names.place(of: named, in: recorded) ?? names.place(of: named, in: now) ?? range
        }
        let first = range.contains(common) ? common : range.lowerBound
        func part(_ octets: [UInt8]) -> String {
            guard range.lowerBound < octets.count else { return "nothing" }
            if isSecret(octets, row, range) { return "<sealed \(range.count) bytes>" }
            let slice = octets[range.lowerBound..<min(range.upperBound, octets.count)]
            return slice.count > 16 ? "\(Hex.encode(slice.prefix(16)))..., \(slice.count) bytes" : Hex.encode(slice)
        }
        return Divergence.Field(
            path: path, place: "byte \(first + 1) of \(longest)", recorded: part(recorded), now: part(now),
            recordedMeaning: names.meaning(of: path, in: recorded), nowMeaning: names.meaning(of: path, in: now)
        )
    }

    /// Whether octets of a command are sealed in the recording, or would be if they were recorded now.
    private func isSecret(_ octets: [UInt8], _ row: RecordedSession.Octets, _ range: Range<Int>) -> Bool {
        let places = [SealTable.places(command: octets), SealTable.places(frame: octets, answer: [], checksum: 0)]
        return (row.sealed + places.flatMap(\.command)).contains { $0.overlaps(range) }
    }

    private func commandNotes(at index: Int, recorded: [UInt8], now: [UInt8]) -> [String] {
        var notes: [String] = []
        let common = zip(recorded, now).prefix { $0 == $1 }.count
        if common > 0, common == min(recorded.count, now.count) || common + 1 == max(recorded.count, now.count) {
            notes.append("the \(common) bytes before it are the same")
        }
        if recorded.count >= 4, now.count >= 4, recorded[1] != now[1] || recorded[0] != now[0] {
            notes.append("recorded \(name(of: recorded)), now \(name(of: now))")
        }
        if index > 0, let last = answerText(card.transport.steps[index - 1]) { notes.append("the last answer given was \(last)") }
        return notes
    }

    private func answerText(_ step: RecordedSession.Step) -> String? {
        switch step {
        case .apdu(let packet, _, .response(let octets)), .frame(let packet, _, .response(let octets)):
            let shown = octets.octets.count > 8 ? "\(Hex.encode(octets.octets.prefix(8)))..." : Hex.encode(octets.octets)
            return "\(shown) in frame \(octets.frame), exchange \(packet)"
        case .apdu(let packet, _, .failure(let error, let frame)), .frame(let packet, _, .failure(let error, let frame)):
            return "\(error.case.rawValue) in frame \(frame), exchange \(packet)"
        default: return nil
        }
    }

    private var names: APDUFields { options.grammars == nil ? .standard : APDUFields(options.grammars) }

    private func name(of octets: [UInt8]) -> String { names.name(of: octets) }

    /// The first path at which two results differ; nil when they differ in draws alone.
    private func resultField(recorded: String, now: String) -> Divergence.Field? {
        guard let left = try? JSONValue.parse(recorded), let right = try? JSONValue.parse(now) else {
            return Divergence.Field(
                path: "result", place: "", recorded: "\(recorded.count) characters", now: "\(now.count) characters")
        }
        guard let (path, a, b) = firstDifference(left, right, draws.boundValues, path: "result") else { return nil }
        return Divergence.Field(path: path, place: "", recorded: a?.text ?? "absent", now: b?.text ?? "absent")
    }

    private func firstDifference(
        _ left: JSONValue?, _ right: JSONValue?, _ bound: BoundValues, path: String, depth: Int = 32
    ) -> (String, JSONValue?, JSONValue?)? {
        guard left != right else { return nil }
        if case .string(let recorded)? = left, case .string(let now)? = right, bound.areOneDraw(recorded, now) { return nil }
        guard depth > 0 else { return (path, left, right) }
        if case .object(let a)? = left, case .object(let b)? = right {
            for key in Set(a.keys).union(b.keys).sorted() {
                if let found = firstDifference(a[key], b[key], bound, path: "\(path).\(key)", depth: depth - 1) { return found }
            }
            return nil
        }
        if case .array(let a)? = left, case .array(let b)? = right {
            for index in 0..<max(a.count, b.count) {
                let one = a.indices.contains(index) ? a[index] : nil
                let other = b.indices.contains(index) ? b[index] : nil
                if let found = firstDifference(one, other, bound, path: "\(path).\(index)", depth: depth - 1) { return found }
            }
            return nil
        }
        return (path, left, right)
    }
}
