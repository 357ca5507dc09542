// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import Octets
import SessionSupport
import Testing
import TraceFile
import VirtualCards

@testable import Replay

/// What was wrong with the protection of a recorded answer is wrong in every run, so that the library fails as it did.
@Suite struct ResealedFaultTests {
    /// The answer to one of the protected commands of a session over Basic Access Control, changed after it was recorded.
    private struct Spoilt {
        var trace: Trace
        let secrets: SecretStore
        /// The row of the answer to the read of the first four octets of EF.COM.
        private let row: Int
        /// The counter of its command.
        private let counter: [UInt8]

        init() async throws {
            let session = try await Session.passport()
            let (trace, secrets) = (session.trace, session.secrets)
            (self.trace, self.secrets) = (trace, secrets)
            let protected = trace.rows.indices.filter { trace.rows[$0].direction == .sent && trace.rows[$0].body.first == 0x0C }
            row = try #require(protected.dropFirst().first) + 1
            // The counter begins as the ends of both challenges (ICAO 9303-11 9.8.6.3); the second command is the third message.
            let asked = try #require(trace.rows.firstIndex { $0.body.starts(with: [0x00, 0x84]) })
            let own = try #require(secrets.records.first { $0.name.contains("rndIFD") }?.octets)
            let both = Array(trace.rows[asked + 1].body[4..<8]) + own.suffix(4)
            let start = both.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } &+ 3
            counter = (0..<8).map { UInt8(truncatingIfNeeded: start >> (56 - 8 * UInt64($0))) }
        }

        private var answer: [UInt8] {
            get { trace.rows[row].body }
            set { trace.rows[row].body = newValue }
        }

        mutating func change(_ body: (inout [UInt8]) -> Void) { body(&answer) }

        /// The data under a right MAC, with what the caller takes for its padding.
        mutating func seal(_ blocks: [UInt8]) throws {
            let keys = ["enc", "mac"].compactMap { secrets.value(named: "secureMessaging.\($0)") }
            try #require(keys.count == 2)
            answer = try #require(
                PassportAgreement.seal(
                    blocks, status: [0x90, 0x00], isOdd: false, encryption: keys[0], authentication: keys[1], counter: counter,
                    isPadded: true))
        }

        /// How a run ends in which the library takes the octets that it drew in the recording, and one with octets of its own.
        func ends() async -> (recorded: String?, fresh: String?) {
            func end(_ mode: ReplayMode, _ entropy: ReplayEntropy) async -> String? {
                var options = ReplayOptions()
                (options.mode, options.entropy) = (mode, entropy)
                let report = await Replay(of: trace, secrets: secrets, options: options).run()
                return report.divergence.map { "\($0.kind): \($0.thrown ?? "nothing")" }
            }
            return (await end(.bytes, .recorded), await end(.resealed, .seed(7)))
        }
    }

    @Test func theChangedAnswerIsTheOneMeant() async throws {
        var spoilt = try await Spoilt()
        // EF.COM begins 60 14 5F 01; with its right padding nothing has changed.
        try spoilt.seal([0x60, 0x14, 0x5F, 0x01, 0x80, 0x00, 0x00, 0x00])
        let ends = await spoilt.ends()
        #expect(ends == (nil, nil))
    }

    @Test(arguments: ["MAC", "cryptogram", "no MAC", "no status inside", "other status inside", "order", "no padding"])
    func theLibraryFailsAsItDid(_ fault: String) async throws {
        var spoilt = try await Spoilt()
        switch fault {
        case "MAC": spoilt.change { $0[$0.count - 3] ^= 0x80 }
        case "cryptogram": spoilt.change { $0[5] ^= 0x01 }
        case "no MAC": spoilt.change { $0.removeSubrange(($0.count - 12)..<($0.count - 2)) }
        case "no status inside": spoilt.change { $0.removeSubrange(11..<15) }
        case "other status inside": spoilt.change { $0.replaceSubrange(($0.count - 2)..., with: [0x62, 0x82]) }
        case "order": spoilt.change { $0 = Array($0[11..<15] + $0[..<11] + $0[15...]) }
        default: try spoilt.seal([0x60, 0x14, 0x5F, 0x01, 0x00, 0x00, 0x00, 0x00])
        }
        let (recorded, fresh) = await spoilt.ends()
        #expect(recorded == fresh, "\(fault)")
        if fault != "other status inside" { #expect(recorded != nil, "\(fault)") }
    }

    @Test func aKeptTraceOfAWrongMACIsTheSameUnderFreshKeys() async throws {
        var options = ReplayOptions()
        options.mode = .resealed
        for seed in 1...3 {
            options.entropy = .seed(UInt64(seed))
            let path = KeptTracesTests.folder.appendingPathComponent("passport-bac-wrong-mac.pcapng").path
            let report = await (try Replay(of: path, options: options)).run()
            #expect(report.isSame, "\(report.text)")
        }
    }
}
