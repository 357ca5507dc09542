// SPDX-License-Identifier: MIT

import CardSockets
import Flows
import SecureElementCredential
import TraceDecoding
import TraceFile

/// The contactless reader of a recorded card emulation: it sends what the recorded one sent, where it sent it. What the card
/// answers is part of the flow's result and compared with it.
struct RecordedReader: Sendable {
    /// What the reader did during one step of the script.
    enum Act: Sendable {
        case power(Bool)
        case command([UInt8])
    }

    private let steps: [[Act]]

    /// - Parameter session: the recorded session; the emulated card's rows are those of every transport but the flow's own.
    init(_ session: RecordedSession, flow: RecordedSession.Call, trace: Trace, secrets: SecretStore) {
        // The trace may say any number.
        let own = (flow.row.transport ?? 1) &- 1
        let calls = session.calls.filter { $0.row.parent == flow.row.id && $0.row.function.hasPrefix("reader(") }
        var acts: [(packet: UInt64, act: Act)] = []
        for row in trace.rows where trace.interfaces.indices.contains(row.interface) {
            guard let packet = row.packetID else { continue }
            switch trace.interfaces[row.interface].kind {
            case .apdu(let reader) where reader != own && row.direction == .sent:
                acts.append((packet, .command(SealedPlaces(row: row, secrets: secrets).octets)))
            case .reader(let reader) where reader != own && row.dissector == "json":
                guard case .reader(let event)? = MetaRow(body: row.body) else { continue }
                if event.name == "reset" { acts.append((packet, .power(true))) }
                if event.name == "powerOff" { acts.append((packet, .power(false))) }
            default: break
            }
        }
        steps = calls.map { call in
            let end = call.endPacket ?? .max
            return acts.filter { call.packet <= $0.packet && $0.packet <= end }.map(\.act)
        }
    }

    func work(on card: EmulatedCard, step: Int) async {
        guard steps.indices.contains(step) else { return }
        for act in steps[step] {
            switch act {
            case .power(let isOn): await card.field(isPresent: isOn)
            case .command(let octets): _ = await card.command(octets)
            }
        }
    }
}
