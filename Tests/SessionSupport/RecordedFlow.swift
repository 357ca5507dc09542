// SPDX-License-Identifier: MIT

import Flows
import Octets
package import TestSupport
package import TraceFile
package import Tracing
package import VirtualCards

package let specimenKey = "L898902C<369080619406236"

package func virtualCard(_ reference: String) throws -> VirtualCardTransport {
    VirtualCardTransport(try VirtualCardCatalog.make(try VirtualCardSpecification(reference: reference)))
}

/// Hexadecimal text as octets; spaces are passed over.
package func hex(_ text: String) -> [UInt8] { (try? Hex.decode(text.replacing(" ", with: ""))) ?? [] }

/// One recorded flow on disk.
package struct Session {
    package let folder: TemporaryFolder
    package let trace: Trace
    package let secrets: SecretStore
    package let result: String?

    package var path: String { folder("a.pcapng") }

    package init(
        _ flow: String, _ arguments: [String: JSONValue], card: String, secrets placement: SecretsPlacement = .beside
    ) async throws {
        folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"), secrets: placement)
        let found = FlowTable.named(flow)
        result = try? await found?.run(recording, JSONValue.object(arguments).text, over: try virtualCard(card))
        try recording.close()
        trace = try Trace.load(path: folder("a.pcapng"))
        secrets = try SecretStore.load(forTrace: folder("a.pcapng")).store
    }

    package static func passport(_ card: String = "virtual:passport", secrets: SecretsPlacement = .beside) async throws -> Session
    {
        try await Session(
            "passport",
            ["mrzKey": .string(specimenKey), "dataGroups": .array(["com", "sod", "dg1"]), "performActiveAuth": .bool(false)],
            card: card, secrets: secrets
        )
    }

    package static func script(
        _ text: String, _ card: String = "virtual:filesystem", secrets: SecretsPlacement = .beside
    ) async throws -> Session {
        try await Session("apdu", ["script": .string(text)], card: card, secrets: secrets)
    }
}

extension AnyFlow {
    fileprivate func run(_ recording: Recording, _ arguments: String, over card: VirtualCardTransport) async throws -> String {
        try await recording.run(flow: self, argumentsJSON: arguments, over: card)
    }
}

extension Trace {
    /// The JSON rows with the row that each stands in.
    package var meta: [(row: TraceRow, meta: MetaRow)] {
        rows.compactMap { row in row.dissector == "json" ? MetaRow(body: row.body).map { (row, $0) } : nil }
    }

    package var calls: [MetaRow.Call] { meta.compactMap { if case .call(let call) = $0.meta { call } else { nil } } }
    package var returns: [MetaRow.Return] { meta.compactMap { if case .return(let row) = $0.meta { row } else { nil } } }
    package var draws: [MetaRow.Entropy] { meta.compactMap { if case .entropy(let row) = $0.meta { row } else { nil } } }
    package var failures: [MetaRow.Failure] { meta.compactMap { if case .error(let row) = $0.meta { row } else { nil } } }

    /// Rows of `apdu:N` and `rf:N` with their direction, as text: `> 00A4000C`.
    package var exchanges: [String] {
        rows.filter { row in
            switch kind(of: row) {
            case .apdu, .rf: row.direction != nil && !(row.direction == .received && row.body.first == 0x3B)
            default: false
            }
        }.map { "\($0.direction == .sent ? ">" : "<") \(Hex.encode($0.body))" }
    }
}
