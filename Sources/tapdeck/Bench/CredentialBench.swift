// SPDX-License-Identifier: MIT

import Flows
import FoundationEssentials
import GlobalPlatform
import SecureElementCredential
import VirtualCards

/// A wired session of twenty exchanges, with the simulated element in this process.
enum CredentialBench {
    private static let exchanges = 20
    private static let points = Data([0x80, 0x10, 0x00, 0x00, 0x00])

    static func run(_ report: BenchReport) async throws {
        guard let product = SpecimenProducts.all.first(where: { $0.name == "loyalty" }) else { return }
        let element = try SimulatedSecureElement()
        let transport = VirtualCardTransport(element.wiredCard())
        let clock = SteppedClock()
        let registry = CredentialRegistry()
        let device = CredentialDevice(
            element: GlobalPlatformElement(
                transport: transport, keys: try GlobalPlatformKeys(single: SecureElementConfiguration.testKey(16)),
                configurations: [product], registry: registry),
            authorizer: FixedAuthorizer(), rules: .ios27_1, policy: CredentialPolicy(), host: nil, clock: clock,
            installationDelay: .seconds(1))
        try await device.run {
            let first = try await CredentialSession.startSession()
            _ = try await first.provisionCredential(configurationUUID: product.identifier, name: "bench")
            await clock.advance(by: .seconds(2))
            guard let credential = try await first.listCredentials().first else {
                throw Failure(.notSo, "the bench's credential was not installed")
            }
            try await first.invalidate()

            for _ in 0..<20 { try await wired(credential) }
            var times: [Double] = []
            let start = ContinuousClock.now
            while (ContinuousClock.now - start).microseconds < 1_000_000 {
                let begin = ContinuousClock.now
                try await wired(credential)
                times.append((ContinuousClock.now - begin).microseconds)
            }
            times.sort()
            report.figure("credential-wired", times[times.count / 2], "us")
        }
    }

    /// From the start of a session to its end.
    private static func wired(_ credential: CredentialSession.Credential) async throws {
        let session = try await CredentialSession.startSession()
        try await session.enterWiredMode(using: credential)
        for _ in 0..<exchanges {
            guard try await session.transceive(points).suffix(2) == Data([0x90, 0x00]) else {
                throw Failure(.notSo, "the bench's credential did not answer")
            }
        }
        try await session.endWiredMode()
        try await session.invalidate()
    }
}
