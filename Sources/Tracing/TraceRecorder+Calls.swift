// SPDX-License-Identifier: MIT

import CardCrypto
import Flows
import Octets
import Synchronization
import TagTransport
import TraceFile

extension TraceRecorder {
    // MARK: - Calls

    /// Writes a call's row, the rows of transports that no call has named yet before it.
    ///
    /// - Parameter secret: the arguments that are kept among the secrets and stand sealed in the row.
    /// - Returns: the call's number.
    func beginCall(
        flow: String?, function: String, arguments: [String: JSONValue], secret: Set<String>, parent: Int?, port: Port?
    ) -> Int {
        let time = currentTime()
        return state.withLock { state in
            let call = state.nextCall
            state.nextCall += 1
            let packet = takePacket(&state)
            state.calls[call] = CallState(packet: packet)
            var shown = arguments
            var records: [SecretRecord] = []
            for (name, value) in arguments.sorted(by: { $0.key < $1.key }) where secret.contains(name) {
                let key = "call:\(call):\(name)"
                records.append(sealedRecord(key, Array(value.text.utf8), packet))
                shown[name] = .sealed(key)
            }
            guardedKeep(records, &state)
            writeTransports(packet: packet, time: time, &state)
            let transport = port.flatMap { port in state.transports.first { $0.port == port }?.id }
            let row = MetaRow.call(
                MetaRow.Call(
                    id: call, parent: parent, flow: flow, function: function, args: shown, transport: transport
                )
            )
            writeMeta(row, packet: packet, time: time, &state)
            return call
        }
    }

    /// Writes a call's return; its result, canonical JSON, goes among the secrets.
    ///
    /// - Parameter extra: what the row may say of it openly.
    func finishCall(_ call: Int, result: String?, extra: [String: JSONValue] = [:]) {
        let time = currentTime()
        state.withLock { state in
            let packet = takePacket(&state)
            if let result { guardedKeep([sealedRecord("call:\(call):result", Array(result.utf8), packet)], &state) }
            var row = MetaRow.Return(call: call, ok: true)
            row.extra = extra
            writeMeta(.return(row), packet: packet, time: time, &state)
        }
    }

    /// Writes what a call threw; the detail goes among the secrets.
    func failCall(_ call: Int, _ failure: FlowFailure) {
        let time = currentTime()
        state.withLock { state in
            let packet = takePacket(&state)
            guardedKeep([sealedRecord("call:\(call):error", Array(failure.detail.utf8), packet)], &state)
            var row = MetaRow.Return(call: call, ok: false, domain: failure.domain, case: failure.case)
            // A transport's own number is part of what its error is equal by.
            if failure.domain == "PCSC", let code = failure.code { row.extra["code"] = .string(code) }
            writeMeta(.return(row), packet: packet, time: time, &state)
        }
    }

    /// Writes a text of progress, sealed: it may name what was read.
    func recordProgress(_ text: String, call: Int) {
        let time = currentTime()
        state.withLock { state in
            guard var callState = state.calls[call] else { return }
            let key = "call:\(call):progress:\(callState.progress)"
            callState.progress += 1
            state.calls[call] = callState
            guardedKeep([sealedRecord(key, Array(text.utf8), callState.packet)], &state)
            writeMeta(.progress(MetaRow.Progress(call: call, text: .sealed(key))), packet: callState.packet, time: time, &state)
        }
    }

    // MARK: - The environment's draws

    func recordDraw(_ octets: [UInt8], label: String, call: Int) {
        let time = currentTime()
        state.withLock { state in
            let index = state.calls[call]?.draws[label] ?? 0
            state.calls[call]?.draws[label] = index + 1
            // All draws before one exchange share a number.
            let packet: UInt64
            if let run = state.drawRun {
                packet = run
            } else {
                packet = takePacket(&state)
                state.drawRun = packet
            }
            let record = SecretRecord(
                kind: .entropy, packetID: UInt32(truncatingIfNeeded: packet), name: "call:\(call):\(label):\(index)",
                octets: octets
            )
            guardedKeep([record], &state)
            let row = MetaRow.Entropy(call: call, label: label, index: index, length: octets.count)
            writeMeta(.entropy(row), packet: packet, time: time, &state)
        }
    }

    func recordTime(_ nanoseconds: Int64, kind: ClockKind, call: Int) {
        let time = currentTime()
        state.withLock { state in
            guard let packet = state.calls[call]?.packet else { return }
            let row = MetaRow.Clock(call: call, kind: MetaRow.Clock.Kind(kind), nanoseconds: nanoseconds)
            writeMeta(.clock(row), packet: packet, time: time, &state)
        }
    }

    func recordKey(_ name: String, _ octets: [UInt8]) {
        state.withLock { state in
            let record = SecretRecord(
                kind: .key, packetID: UInt32(truncatingIfNeeded: state.lastExchange), name: name, octets: octets
            )
            guardedKeep([record], &state)
        }
    }

    func recordMark(_ text: String) {
        let time = currentTime()
        state.withLock { state in
            let packet = takePacket(&state)
            writeMeta(.mark(MetaRow.Mark(text: text)), packet: packet, time: time, &state)
        }
    }

    // MARK: - Structured calls and reader events

    /// Runs a structured call of a transport and writes it down with its arguments, its frames between call and return.
    func structuredCall<Result: Sendable>(
        _ function: String, _ arguments: [String: CallValue], secret: Set<String> = [], on port: Port,
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> (CallValue, Result)
    ) async throws -> Result {
        let call = beginCall(
            flow: nil, function: function, arguments: arguments.mapValues(\.json), secret: secret, parent: CallContext.current,
            port: port
        )
        do {
            let (value, result) = try await CallContext.$current.withValue(call, operation: body, isolation: isolation)
            finishCall(call, result: value.json.text)
            return result
        } catch {
            failCall(call, FlowFailure.describe(error))
            throw error
        }
    }

    struct ReaderEventDetail {
        var atr: [UInt8] = []
        var control: UInt32?
        var input: [UInt8] = []
        var output: [UInt8] = []
    }

    /// Runs what is done to the reader itself and writes it down.
    func readerEvent<Result: Sendable>(
        _ name: String, on port: Port, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> (ReaderEventDetail, Result)
    ) async throws -> Result {
        do {
            let (detail, result) = try await body()
            let time = currentTime()
            state.withLock { state in
                let packet = takePacket(&state)
                var row = MetaRow.Reader(
                    name: name, code: nil, control: detail.control.map { Int($0) }, atr: detail.atr.isEmpty ? nil : detail.atr
                )
                if detail.control != nil { (row.input, row.output) = sealedControl(detail, packet, &state) }
                writeEvent(row, packet, time, port, &state)
                if name != "control", !detail.atr.isEmpty { writeATR(detail.atr, packet, time, port, &state) }
            }
            return result
        } catch {
            let failure = FlowFailure.describe(error)
            let time = currentTime()
            state.withLock { state in
                let packet = takePacket(&state)
                writeError(failure, after: packet, packet, time, port, &state)
            }
            throw error
        }
    }

    /// What a control code carried. Readers take commands of class `FF` this way, and frames of a PN53x without it.
    private func sealedControl(
        _ detail: ReaderEventDetail, _ packet: UInt64, _ state: inout State
    ) -> (input: Sealable<[UInt8]>, output: Sealable<[UInt8]>) {
        let wrapped = [0xFF, 0x00, 0x00, 0x00, UInt8(truncatingIfNeeded: detail.input.count)] + detail.input
        let places = [
            SealTable.places(command: detail.input, answer: detail.output),
            SealTable.places(command: wrapped, answer: detail.output + [0x90, 0x00]),
        ]
        func part(_ name: String, _ octets: [UInt8], isSecret: Bool) -> Sealable<[UInt8]> {
            guard isSecret else { return .plain(octets) }
            let key = "exchange:\(packet):\(name)"
            guardedKeep([sealedRecord(key, octets, packet)], &state)
            return .sealed(key)
        }
        return (
            part("in", detail.input, isSecret: places.contains { !$0.command.isEmpty }),
            part("out", detail.output, isSecret: places.contains { !$0.answer.isEmpty })
        )
    }

    func writeEvent(_ row: MetaRow.Reader, _ packet: UInt64, _ time: UInt64, _ port: Port, _ state: inout State) {
        writeTwins(.reader(row), packet: packet, time: time, port, &state)
    }

    func writeError(
        _ failure: FlowFailure, after exchange: UInt64, _ packet: UInt64, _ time: UInt64, _ port: Port, _ state: inout State
    ) {
        // What the transport said beside its case may name things; libraries hand it on, so that a replay wants it.
        guardedKeep([sealedRecord("exchange:\(exchange):error", Array(failure.detail.utf8), packet)], &state)
        let row = MetaRow.Failure(after: exchange, domain: failure.domain, case: failure.case, code: failure.code)
        writeTwins(.error(row), packet: packet, time: time, port, &state)
    }

    // MARK: - Parts

    func sealedRecord(_ name: String, _ octets: [UInt8], _ packet: UInt64) -> SecretRecord {
        SecretRecord(kind: .sealed, packetID: UInt32(truncatingIfNeeded: packet), name: name, octets: octets)
    }

    /// Puts secrets on disk; the first failure is kept.
    func guardedKeep(_ records: [SecretRecord], _ state: inout State) {
        guard state.failure == nil, !records.isEmpty, state.keepsSecrets else { return }
        do { try keep(records, &state) } catch { state.failure = error }
    }

    /// Writes the rows of transports that have none yet, under a call's number.
    func writeTransports(packet: UInt64, time: UInt64, _ state: inout State) {
        for index in state.transports.indices where !state.transports[index].isWritten {
            state.transports[index].isWritten = true
            let transport = state.transports[index]
            writeMeta(.transport(transport.description.row(id: transport.id)), packet: packet, time: time, &state)
        }
    }
}

extension MetaRow.Clock.Kind {
    init(_ kind: ClockKind) { self = kind == .calendar ? .calendar : .monotonic }
}
