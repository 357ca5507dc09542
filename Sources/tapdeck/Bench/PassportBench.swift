// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import TagTransport
import VirtualCards

/// A whole read of a passport with the card in this process: sessions a second, and how much of the time libcrypto has.
enum PassportBench {
    private static let key = "L898902C<369080619406236"
    private static let kinds: [(name: String, options: String)] = [
        ("passport-bac", ""), ("passport-pace", "pace=ecdh-gm-aes128:13"),
    ]

    static func run(_ report: BenchReport) async throws {
        for kind in kinds {
            let name = kind.name
            let specification = try VirtualCardSpecification(
                reference: "passport\(kind.options.isEmpty ? "" : "?")\(kind.options)")
            for _ in 0..<10 { try await read(specification) }
            var sessions = 0
            let start = ContinuousClock.now
            while (ContinuousClock.now - start).microseconds < 2_000_000 {
                try await read(specification)
                sessions += 1
            }
            let seconds = (ContinuousClock.now - start).microseconds / 1_000_000
            report.figure(name, Double(sessions) / seconds, "sessions/s")
            let share = try await Sampler.share(in: "libcrypto") {
                for _ in 0..<max(20, sessions / 2) { try await read(specification) }
            }
            if let share { report.figure("\(name)-libcrypto", share * 100, "%") }
        }
    }

    /// The application, EF.COM, EF.SOD and DG1, both sides' cryptography in it.
    private static func read(_ specification: VirtualCardSpecification) async throws {
        let transport = VirtualCardTransport(try VirtualCardCatalog.make(specification))
        let model = try await CoreExtendedNFC.readPassport(
            transport: transport, mrzKey: key, dataGroups: [.com, .sod, .dg1], performActiveAuth: false)
        guard model.mrz != nil else { throw Failure(.notSo, "the bench's passport gave no zone") }
    }
}
