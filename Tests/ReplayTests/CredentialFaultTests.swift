// SPDX-License-Identifier: MIT

import Flows
import FoundationEssentials
import Octets
import Replay
import SecureElementCredential
import SessionSupport
import Synchronization
import TagTransport
import TestSupport
import Testing
import TraceFile
import Tracing
import VirtualCards

/// What a reader does to a credential session: the mapped error and state, in the trace and in its replay.
@Suite struct CredentialFaultTests {
    /// A transport that fails at one of its commands.
    private final class Faulty: ISO7816TagTransporting {
        let inner: VirtualCardTransport
        private let error: TransportError
        private let left: Mutex<Int>

        /// - Parameter number: the command at fault, from 1, of those that are `80 10`.
        init(_ inner: VirtualCardTransport, _ error: TransportError, at number: Int) {
            self.inner = inner
            self.error = error
            left = Mutex(number)
        }

        var initialAID: String { "" }
        var identifier: Data { inner.identifier }
        func send(_ data: Data) async throws -> Data { try await inner.send(data) }

        func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
            let isAtFault = left.withLock { left in
                guard apdu.cla == 0x80, apdu.ins == 0x10 else { return false }
                left -= 1
                return left == 0
            }
            if isAtFault { throw error }
            return try await inner.sendAPDU(apdu)
        }
    }

    static let faults: [(TransportError.Case, UInt32, String)] = [
        (.sharingViolation, 0x8010_000B, "resourceUnavailable"), (.readerUnavailable, 0x8010_0017, "resourceUnavailable"),
        (.serviceUnavailable, 0x8010_001D, "resourceUnavailable"), (.tagReset, 0x8010_0068, "acquiredResourceRelinquished"),
        (.tagConnectionLost, 0x8010_0069, "acquiredResourceRelinquished"),
    ]

    @Test(arguments: faults.indices) func aFaultIsRecordedAndReplayedWithItsErrorAndState(_ index: Int) async throws {
        let (fault, code, error) = Self.faults[index]
        let folder = try TemporaryFolder()
        let script = """
            startSession
            provisionCredential loyalty "points" -> C1
            wait 2 s
            listCredentials -> 1
            enterWiredMode C1
            transceive 8010000000 -> 9000
            transceive 8010000000 throws \(error)
            state -> management
            enterWiredMode C1
            transceive 8010000000 -> 9000
            """
        let package = SpecimenPackage.loyalty
        let identifier = UUID(uuid: (0x54, 0x44, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 4))
        let arguments = CredentialFlow.Arguments(
            script: script, key: Hex.encode(SecureElementConfiguration.testKey(16)),
            configurations: [
                ProductConfiguration(
                    identifier: identifier, name: "loyalty", packageAID: package.aid, loadFile: package.loadFileDataBlock,
                    instances: [.init(aid: package.instanceAID, moduleAID: package.moduleAID)])
            ])
        let card = VirtualCardTransport(try SimulatedSecureElement().wiredCard())
        let recording = try Recording(to: folder("f.pcapng"), secrets: .embedded)
        let flow = try #require(FlowTable.named("credential"))
        _ = try await recording.run(
            flow: flow, argumentsJSON: try CanonicalJSON.encode(arguments),
            over: Faulty(card, TransportError(fault, code: code), at: 2))
        try recording.close()

        let trace = try Trace.load(path: folder("f.pcapng"))
        let metas = trace.rows.compactMap { MetaRow(body: $0.body) }
        let failures = metas.compactMap { meta -> MetaRow.Failure? in if case .error(let row) = meta { row } else { nil } }
        #expect(failures.map(\.case) == [fault.rawValue])
        #expect(
            failures.first?.code
                == Hex.encode([UInt8(code >> 24), UInt8(code >> 16 & 0xFF), UInt8(code >> 8 & 0xFF), UInt8(code & 0xFF)]))
        let states = metas.compactMap { meta -> String? in if case .state(let row) = meta { row.to } else { nil } }
        #expect(states == ["management", "wired", "management", "wired", "invalid"])
        let thrown = metas.compactMap { meta -> String? in if case .return(let row) = meta { row.case } else { nil } }
        #expect(thrown == [error])

        let report = await (try Replay(of: folder("f.pcapng"))).run()
        guard case .same = report.verdict else {
            Issue.record("\(report.verdict)")
            return
        }
    }
}
