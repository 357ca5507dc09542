// SPDX-License-Identifier: MIT

import Flows
import FoundationEssentials
import Octets
import SecureElementCredential
import Synchronization
import TraceFile

/// Writes down what credential sessions are asked, answer and become, as calls, events and states of the call that they run
/// in; and what passes between an emulated card and its reader, on interfaces of its own.
///
/// A call leads to its state: its return stands before the row of the state, and before what happened in that state.
final class RecordingCredentialObserver: CredentialObserver {
    private let recorder: TraceRecorder
    /// The recorded call that the session runs in.
    private let parent: Int
    private let reader = Mutex<TraceRecorder.Port?>(nil)
    private let waiting = Mutex(Waiting())

    private struct Waiting {
        var call: Int?
        var rows: [MetaRow] = []
    }

    init(recorder: TraceRecorder, parent: Int) {
        self.recorder = recorder
        self.parent = parent
    }

    func began(_ function: String, _ arguments: [CredentialArgument]) -> Int {
        recorder.beginCall(
            flow: nil, function: function, arguments: Self.object(arguments), secret: [], parent: parent, port: nil)
    }

    func ended(_ call: Int, _ result: Result<[CredentialArgument], CredentialSession.ErrorCode>) {
        switch result {
        case .success(let values):
            recorder.finishCall(
                call, result: values.isEmpty ? nil : JSONValue.object(Self.object(values)).text,
                extra: Self.credentials(in: values))
        case .failure(let error): recorder.failCall(call, FlowFailure.describe(error))
        }
        let rows = waiting.withLock { waiting -> [MetaRow] in
            guard waiting.call == call else { return [] }
            defer { waiting = Waiting() }
            return waiting.rows
        }
        rows.forEach(recorder.recordMeta)
    }

    func changed(from: CredentialSession.State, to: CredentialSession.State, call: Int?) {
        var row = MetaRow.State(call: call ?? parent, machine: "CredentialSession", from: from.name, to: to.name)
        if let credential = to.credential ?? from.credential {
            row.extra["credential"] = .string(credential.identifier.uuidString)
        }
        write(.state(row), opening: call)
    }

    func happened(_ name: String, _ detail: [CredentialArgument], call: Int?) {
        let shown = detail.isEmpty ? nil : JSONValue.object(Self.object(detail))
        write(.event(MetaRow.Event(call: call ?? parent, name: name, detail: shown)), opening: nil)
    }

    /// - Parameter call: the running call that changed the state; nil when no call did.
    private func write(_ row: MetaRow, opening call: Int?) {
        let isKept = waiting.withLock { waiting in
            waiting.call = waiting.call ?? call
            if waiting.call != nil { waiting.rows.append(row) }
            return waiting.call != nil
        }
        if !isKept { recorder.recordMeta(row) }
    }

    func timePassed(_ nanoseconds: Int64) { recorder.skipTime(nanoseconds) }

    // MARK: - The contactless side

    func contactlessCard(isPresent: Bool, atr: [UInt8]) {
        if isPresent {
            _ = port(atr)
        } else if let port = reader.withLock({ $0 }) {
            recorder.noteReader("removal", atr: [], on: port)
        }
    }

    func contactlessField(isPresent: Bool, atr: [UInt8]) {
        recorder.noteReader(isPresent ? "reset" : "powerOff", atr: isPresent ? atr : [], on: port(atr))
    }

    func contactlessCommand(_ command: [UInt8]) -> UInt64 { recorder.beginAPDU(command, on: port([])) }

    func contactlessAnswer(_ answer: [UInt8]?, to command: [UInt8], _ exchange: UInt64) {
        if let answer { recorder.endAPDU(answer, to: command, exchange, on: port([])) }
    }

    /// The emulated card's interfaces; declared when it appears for the first time.
    private func port(_ atr: [UInt8]) -> TraceRecorder.Port {
        reader.withLock { known in
            if let known { return known }
            let port = recorder.addReader(
                TransportDescription(emulatedCard: "contactless reader of the emulated card", atr: atr))
            known = port
            return port
        }
    }

    // MARK: - Values

    /// The identifiers of the credentials that a call gave, those of a list by name: later rows speak of them.
    private static func credentials(in values: [CredentialArgument]) -> [String: JSONValue] {
        func text(_ name: String, _ values: [CredentialArgument]) -> String? {
            guard case .text(let text)? = values.first(where: { $0.name == name })?.value else { return nil }
            return text
        }
        var lists: [[CredentialArgument]] = []
        if let identifier = values.first(where: { $0.name == "identifier" }) {
            lists = [[identifier]]
        } else if case .list(let list)? = values.first(where: { $0.name == "credentials" })?.value {
            lists = list.sorted {
                (text("name", $0) ?? "", text("identifier", $0) ?? "") < (text("name", $1) ?? "", text("identifier", $1) ?? "")
            }
        } else {
            return [:]
        }
        return ["credentials": .array(lists.compactMap { text("identifier", $0) }.map { .string($0) })]
    }

    private static func object(_ arguments: [CredentialArgument]) -> [String: JSONValue] {
        Dictionary(arguments.map { ($0.name, json($0.value)) }, uniquingKeysWith: { first, _ in first })
    }

    private static func json(_ value: CredentialArgument.Value) -> JSONValue {
        switch value {
        case .text(let text): .string(text)
        case .octets(let octets): .string(Hex.encode(octets))
        case .number(let number): .integer(Int64(number))
        case .flag(let flag): .bool(flag)
        case .list(let list): .array(list.map { .object(object($0)) })
        case .omitted(let what): .omitted(what)
        }
    }
}

extension TraceRecorder {
    /// A row of `meta` with a number of its own.
    func recordMeta(_ row: MetaRow) {
        let time = currentTime()
        state.withLock { state in
            let packet = takePacket(&state)
            writeMeta(row, packet: packet, time: time, &state)
        }
    }

    /// What happened to a card that this process emulates.
    func noteReader(_ name: String, atr: [UInt8], on port: Port) {
        let time = currentTime()
        state.withLock { state in
            let packet = takePacket(&state)
            writeEvent(MetaRow.Reader(name: name, atr: atr.isEmpty ? nil : atr), packet, time, port, &state)
        }
    }
}

extension TransportDescription {
    /// A card that this process emulates, seen from its own side.
    init(emulatedCard name: String, atr: [UInt8]) {
        kind = .iso7816
        identifier = []
        readerName = name
        protocolName = "T=CL"
        self.atr = atr
    }
}
