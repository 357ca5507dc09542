// SPDX-License-Identifier: MIT

import Octets
import TagTransport
import TraceFile

/// What a trace holds for a replay: calls with their arguments and outcome, draws, and what each transport was asked and answered.
struct RecordedSession: Sendable {
    /// Octets of a row, with the places that are sealed and not at hand.
    struct Octets: Sendable {
        var octets: [UInt8]
        /// Places whose secret is missing: they match anything of that length.
        var unknown: [Range<Int>] = []
        /// All sealed places: what stands there is never printed.
        var sealed: [Range<Int>] = []
        var frame: Int
    }

    enum Answer: Sendable {
        case response(Octets)
        case failure(TransportError, frame: Int)
        /// The recording ends before an answer.
        case notRecorded
    }

    /// One thing that was asked of a transport.
    enum Step: Sendable {
        case apdu(packet: UInt64, command: Octets, answer: Answer)
        case frame(packet: UInt64, command: Octets, answer: Answer)
        case structured(packet: UInt64, function: String, arguments: Arguments, outcome: StructuredOutcome)
        case reset(packet: UInt64, atr: [UInt8])
        case removal(packet: UInt64)
        /// `input` is nil when it is sealed and not at hand: it then matches anything.
        case control(packet: UInt64, code: Int, input: [UInt8]?, output: [UInt8])
        /// Something was done to the reader and failed.
        case failedEvent(packet: UInt64, TransportError)

        var packet: UInt64 {
            switch self {
            case .apdu(let packet, _, _), .frame(let packet, _, _), .structured(let packet, _, _, _), .reset(let packet, _),
                .removal(let packet), .control(let packet, _, _, _), .failedEvent(let packet, _):
                packet
            }
        }

        /// Whether it counts as an exchange with the card.
        var isExchange: Bool {
            switch self {
            case .apdu, .frame, .structured: true
            default: false
            }
        }
    }

    /// The arguments of a structured call.
    struct Arguments: Sendable {
        var values: [String: JSONValue]
        /// Those that are sealed: they are never printed. One that has no value here matches anything.
        var sealed: Set<String>

        /// The first argument, by name, that is not as recorded.
        func difference(from now: [String: JSONValue]) -> String? {
            Set(values.keys).union(now.keys).sorted().first { name in
                values[name] != now[name] && !(values[name] == nil && sealed.contains(name))
            }
        }

        func text(_ name: String, of values: [String: JSONValue]) -> String {
            sealed.contains(name) ? "<sealed>" : values[name]?.text ?? "absent"
        }
    }

    enum StructuredOutcome: Sendable {
        /// The result, when the secrets hold it.
        case result(JSONValue?)
        case failure(TransportError)
        /// The recording ends before its return.
        case notRecorded
    }

    struct Call: Sendable {
        var row: MetaRow.Call
        var packet: UInt64
        var outcome: MetaRow.Return?
        /// The number of its return; nil when the recording ends before it.
        var endPacket: UInt64?
        /// Canonical JSON, from the secrets.
        var result: String?
        var errorDetail: String?
        /// Names of the secrets that its arguments want and that are not at hand.
        var missingArguments: [String] = []
        /// The arguments with their sealed values put back.
        var arguments: [String: JSONValue] = [:]
        /// Labels and numbers of draws, in order, with the length each had.
        var draws: [MetaRow.Entropy] = []
        var times: [MetaRow.Clock] = []
    }

    struct Transport: Sendable {
        var row: MetaRow.Transport
        var readerName: String
        var steps: [Step] = []
        /// How long each step's answer took, in nanoseconds.
        var delays: [UInt64] = []
    }

    private(set) var calls: [Call] = []
    private(set) var transports: [Transport] = []
    let secrets: SecretStore

    init(_ trace: Trace, secrets: SecretStore) {
        self.secrets = secrets
        var builder = Builder(trace: trace, secrets: secrets)
        builder.read()
        calls = builder.calls
        transports = builder.finishedTransports()
    }

    /// The call to replay: the first one that a flow made.
    var flowCall: Call? { calls.first { $0.row.flow != nil } }

    /// What a transport was asked while `call` ran: exchanges of other calls, before and after it, are none of its own.
    func transport(_ transport: Transport, during call: Call) -> Transport {
        var transport = transport
        let end = call.endPacket ?? .max
        guard call.packet <= end else { return transport }
        let kept = transport.steps.indices.filter { (call.packet...end).contains(transport.steps[$0].packet) }
        guard kept.count < transport.steps.count else { return transport }
        transport.delays = kept.map { transport.delays.indices.contains($0) ? transport.delays[$0] : 0 }
        transport.steps = kept.map { transport.steps[$0] }
        return transport
    }

    /// The draws of `call` whose octets are not at hand.
    func missingDraws(of call: Call) -> [MetaRow.Entropy] {
        call.draws.filter { secrets.entropy(call: $0.call, label: $0.label, index: $0.index) == nil }
    }
}
