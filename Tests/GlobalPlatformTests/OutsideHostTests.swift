// SPDX-License-Identifier: MIT

import CardSockets
import FoundationEssentials
import GlobalPlatform
import Octets
import TestSupport
import Testing
import VirtualCards

/// A host that shares nothing with this package, in Python over libpcsclite.
@Suite struct OutsideHostTests {
    static let script = PackageFiles.root.path + "/Tests/Hosts/scp03_host.py"

    static let absence: String? = {
        guard let outcome = try? ProcessRunner.runBlocking("python3", [script, "vectors"]) else { return "there is no python3" }
        return outcome.end == .status(0) ? nil : "the Python host does not run here: \(outcome.errorText.suffix(200))"
    }()

    @Test(.enabled(if: absence == nil, Comment(rawValue: absence ?? ""))) func itsOwnChannelPassesTheVectors() async throws {
        let outcome = try await ProcessRunner.run("python3", [Self.script, "vectors"])
        #expect(outcome.outputText == "vectors hold\n")
    }

    @Test(
        .enabled(if: absence == nil, Comment(rawValue: absence ?? "")),
        .enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)))
    func itListsTheRegistryOfTheElementThroughPCSCD() async throws {
        let bench = try Bench()
        let host = try await bench.opened()
        for package in SpecimenPackage.all { try await bench.install(package, with: host) }
        var wanted: [String] = []
        for scope: RegistryScope in [.issuerSecurityDomain, .applications, .loadFiles] {
            for entry in try await host.getStatus(scope) {
                wanted.append(Hex.encode([scope.rawValue]) + " " + Hex.encode(entry.aid))
            }
        }
        let outcome = try await PrivatePCSCD.use { service in
            let link = VPCDLink(card: bench.element.wiredCard(), port: service.ports[0])
            try link.start()
            defer { link.stop() }
            return try await ProcessRunner.run(
                "python3", [Self.script, service.readers[0]], environment: service.environment)
        }
        #expect(outcome.end == .status(0), "\(outcome.errorText)")
        #expect(outcome.outputText.split(separator: "\n").map(String.init) == wanted)
        #expect(wanted.count == 10)
    }
}
