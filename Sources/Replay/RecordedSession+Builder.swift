// SPDX-License-Identifier: MIT

import Octets
import TagTransport
import TraceDecoding
import TraceFile

extension RecordedSession {
    /// Reads a trace's rows into steps: a command and its answer by their number, an error by the number it names.
    struct Builder {
        let trace: Trace
        let secrets: SecretStore
        var calls: [Call] = []

        private var transportRows: [MetaRow.Transport] = []
        private var steps: [Int: [Step]] = [:]
        /// When each step was asked for, and how long its answer took.
        private var begun: [Int: [UInt64]] = [:]
        private var delays: [Int: [UInt64]] = [:]
        private var readerNames: [Int: String] = [:]
        /// Where the exchange with a number stands among its reader's steps.
        private var places: [UInt64: (reader: Int, index: Int)] = [:]
        private var callIndex: [Int: Int] = [:]
        private var structured: [Int: (reader: Int, index: Int)] = [:]

        init(trace: Trace, secrets: SecretStore) {
            self.trace = trace
            self.secrets = secrets
        }

        mutating func read() {
            for row in trace.rows {
                guard trace.interfaces.indices.contains(row.interface) else { continue }
                let interface = trace.interfaces[row.interface]
                switch interface.kind {
                case .apdu(let reader): exchange(row, reader: reader, isAPDU: row.dissector != "data")
                case .rf(let reader): exchange(row, reader: reader, isAPDU: false)
                case .reader(let reader):
                    readerNames[reader] = readerNames[reader] ?? name(from: interface.description)
                    if row.dissector == "json", let meta = MetaRow(body: row.body) { readerRow(meta, row, reader) }
                case .meta:
                    if row.dissector == "json", let meta = MetaRow(body: row.body) { metaRow(meta, row) }
                case .plain, .other: break
                }
            }
        }

        func finishedTransports() -> [Transport] {
            let readers = Set(steps.keys).union(readerNames.keys).sorted()
            return readers.enumerated().map { index, reader in
                let id = reader &+ 1
                let row = transportRows.first { $0.id == id } ?? MetaRow.Transport(id: id, kind: .iso7816)
                return Transport(
                    row: row, readerName: readerNames[reader] ?? "recorded card", steps: steps[reader] ?? [],
                    delays: delays[reader] ?? [])
            }
        }

        /// The reader's name is what stands before the comma or the way in brackets.
        private func name(from description: String) -> String {
            description.hasSuffix(", events") ? String(description.dropLast(8)) : description
        }

        // MARK: - Exchanges

        private func octets(of row: TraceRow) -> Octets {
            let sealed = SealedPlaces(row: row, secrets: secrets)
            return Octets(octets: sealed.octets, unknown: sealed.unknown, sealed: sealed.places, frame: row.frame)
        }

        private mutating func exchange(_ row: TraceRow, reader: Int, isAPDU: Bool) {
            guard let packet = row.packetID else { return }
            if row.direction == .received {
                if let place = places[packet] { answer(.response(octets(of: row)), at: place, isAPDU: isAPDU, row.time) }
                return
            }
            let command = octets(of: row)
            append(
                isAPDU
                    ? .apdu(packet: packet, command: command, answer: .notRecorded)
                    : .frame(packet: packet, command: command, answer: .notRecorded),
                reader: reader, row.time
            )
        }

        /// Gives the exchange at a place its answer, unless it has one.
        private mutating func answer(_ answer: Answer, at place: (reader: Int, index: Int), isAPDU: Bool?, _ time: UInt64) {
            ended(place, time)
            switch steps[place.reader]?[place.index] {
            case .apdu(let packet, let command, .notRecorded)? where isAPDU != false:
                steps[place.reader]?[place.index] = .apdu(packet: packet, command: command, answer: answer)
            case .frame(let packet, let command, .notRecorded)? where isAPDU != true:
                steps[place.reader]?[place.index] = .frame(packet: packet, command: command, answer: answer)
            default: break
            }
        }

        private mutating func append(_ step: Step, reader: Int, _ time: UInt64) {
            let index = steps[reader, default: []].count
            places[step.packet] = (reader, index)
            steps[reader, default: []].append(step)
            begun[reader, default: []].append(time)
            delays[reader, default: []].append(0)
        }

        private mutating func ended(_ place: (reader: Int, index: Int), _ time: UInt64) {
            guard let start = begun[place.reader]?[place.index], time > start, delays[place.reader]?[place.index] == 0 else {
                return
            }
            delays[place.reader]?[place.index] = time - start
        }

        // MARK: - Rows of JSON

        private mutating func readerRow(_ meta: MetaRow, _ row: TraceRow, _ reader: Int) {
            let packet = row.packetID ?? 0
            switch meta {
            case .reader(let event):
                switch event.name {
                case "reset": append(.reset(packet: packet, atr: event.atr ?? []), reader: reader, row.time)
                case "removal": append(.removal(packet: packet), reader: reader, row.time)
                case "control":
                    append(
                        .control(
                            packet: packet, code: event.control ?? 0, input: opened(event.input),
                            output: opened(event.output) ?? []),
                        reader: reader, row.time
                    )
                default: break
                }
            case .error(let failure):
                let detail = secrets.value(named: "exchange:\(failure.after ?? packet):error")
                let error = TransportError(
                    TransportError.Case(rawValue: failure.case) ?? .readerFailure,
                    code: failure.code.flatMap { UInt32($0, radix: 16) },
                    detail: detail.map { TransportError.detail(in: $0, case: failure.case) } ?? ""
                )
                guard let after = failure.after, after != packet, let place = places[after] else {
                    append(.failedEvent(packet: packet, error), reader: reader, row.time)
                    return
                }
                answer(.failure(error, frame: row.frame), at: place, isAPDU: nil, row.time)
            default: break
            }
        }

        /// The octets that went to the reader or came from it; nil when they are sealed and not at hand.
        private func opened(_ octets: Sealable<[UInt8]>?) -> [UInt8]? {
            switch octets {
            case nil: []
            case .plain(let octets)?: octets
            case .sealed(let name)?: secrets.value(named: name)
            }
        }

        private mutating func metaRow(_ meta: MetaRow, _ row: TraceRow) {
            let packet = row.packetID ?? 0
            switch meta {
            case .transport(let transport): transportRows.append(transport)
            case .call(let call): begin(call, packet, row.time)
            case .return(let outcome): end(outcome, packet, row.time)
            case .entropy(let draw):
                if let index = callIndex[draw.call] { calls[index].draws.append(draw) }
            case .clock(let time):
                if let index = callIndex[time.call] { calls[index].times.append(time) }
            default: break
            }
        }

        private mutating func begin(_ row: MetaRow.Call, _ packet: UInt64, _ time: UInt64) {
            var call = Call(row: row, packet: packet)
            for (name, value) in row.args.sorted(by: { $0.key < $1.key }) {
                if let key = value.sealedName {
                    if let octets = secrets.value(named: key), let opened = try? JSONValue.parse(octets) {
                        call.arguments[name] = opened
                    } else {
                        call.missingArguments.append(key)
                    }
                } else if value.omittedWhat == nil {
                    call.arguments[name] = value
                }
            }
            callIndex[row.id] = calls.count
            calls.append(call)
            // A structured call of a FeliCa or vicinity card is served as a whole; chaining runs over its own exchanges.
            if let transport = row.transport, row.flow == nil, !row.function.hasPrefix("sendAPDUWithChaining") {
                let reader = transport &- 1
                structured[row.id] = (reader, steps[reader, default: []].count)
                let arguments = Arguments(
                    values: call.arguments, sealed: Set(row.args.filter { $0.value.sealedName != nil }.keys)
                )
                append(
                    .structured(packet: packet, function: row.function, arguments: arguments, outcome: .notRecorded),
                    reader: reader, time)
            }
        }

        private mutating func end(_ outcome: MetaRow.Return, _ packet: UInt64, _ time: UInt64) {
            guard let index = callIndex[outcome.call] else { return }
            calls[index].outcome = outcome
            calls[index].endPacket = packet
            calls[index].result = secrets.value(named: "call:\(outcome.call):result").map { String(decoding: $0, as: UTF8.self) }
            calls[index].errorDetail = secrets.value(named: "call:\(outcome.call):error").map {
                String(decoding: $0, as: UTF8.self)
            }
            guard let place = structured[outcome.call],
                case .structured(let packet, let function, let arguments, _)? = steps[place.reader]?[place.index]
            else { return }
            ended(place, time)
            let result: StructuredOutcome =
                outcome.ok
                ? .result(calls[index].result.flatMap { try? JSONValue.parse($0) })
                : .failure(error(of: outcome, text: calls[index].errorDetail ?? ""))
            steps[place.reader]?[place.index] = .structured(
                packet: packet, function: function, arguments: arguments, outcome: result)
        }

        /// The error that a structured call threw; the recorded text begins with its case.
        private func error(of outcome: MetaRow.Return, text: String) -> TransportError {
            let name = outcome.case ?? ""
            let detail = TransportError.detail(in: Array(text.utf8), case: name)
            let code = outcome.extra["code"]?.stringValue.flatMap { UInt32($0, radix: 16) }
            return TransportError(TransportError.Case(rawValue: name) ?? .readerFailure, code: code, detail: detail)
        }
    }
}

extension TransportError {
    /// The detail of an error whose whole description was recorded: what stands behind the case's name.
    fileprivate static func detail(in recorded: [UInt8], case name: String) -> String {
        let text = String(decoding: recorded, as: UTF8.self)
        if text == name { return "" }
        return text.hasPrefix("\(name): ") ? String(text.dropFirst(name.count + 2)) : text
    }
}
