// SPDX-License-Identifier: MIT

import Foundation
import GlobalPlatform
import Octets
import TestSupport
import Testing
import TraceFile
import VirtualCards

/// A session that is killed at any moment of provisioning and deleting leaves a store whose credentials are installed, pending
/// or failed, and an element on which nothing is lost or half there.
@Suite(.serialized) struct CredentialCrashTests {
    private static let steps = """
        startSession
        provisionCredential payment "pay"
        provisionCredential loyalty "points"
        provisionCredential loyalty "more points"
        provisionCredential identity "id"
        wait 2 s
        listCredentials -> 5
        deleteCredential "points"
        deleteCredential "id"
        listCredentials -> 3
        """

    /// What the store's list says of a credential.
    private struct Kept: Decodable {
        struct Instance: Decodable {
            var instanceAID: Data
            var packageAID: Data
            var securityDomainAID: Data
        }
        var name: String
        var installation: String
        var instances: [Instance]
    }

    @Test func aKillAtAnyMomentLeavesEveryCredentialWholeOrTold() async throws {
        let folder = try TemporaryFolder()
        try folder.write(Self.steps, "steps.txt")
        try folder.write("startSession\nwait 3 s\nlistCredentials\n", "after.txt")
        func arguments(_ number: Int, _ script: String = "steps.txt", to trace: String? = nil) -> [String] {
            ["record", "-o", trace ?? "\(number).pcapng", "--quiet", "--store", "store\(number)", "credential", script]
        }
        let whole = try await Binary.run(arguments(0), in: folder)
        #expect(whole.end == .status(0), "\(whole.errorText)")
        let length = try folder.octets("0.pcapng").count
        #expect(try states("store0", in: folder).map(\.value).sorted() == ["installed", "installed", "installed"])

        var generator = SeededGenerator(seed: 62)
        var seen: [String: Int] = [:]
        for number in 1...100 {
            try Binary.runAndKill(
                arguments(number), in: folder, onceLongerThan: Int.random(in: 0...length, using: &generator),
                trace: "\(number).pcapng",
                after: UInt32.random(in: 0...4_000, using: &generator))

            let before = try states("store\(number)", in: folder)
            for state in before.values { seen[state, default: 0] += 1 }
            try checkElement("store\(number)", in: folder, isSettled: false)
            // The next session goes on: nothing is pending any more, nothing that was there is lost.
            let after = try await Binary.run(arguments(number, "after.txt", to: "after\(number).pcapng"), in: folder)
            #expect(after.end == .status(0), "kill \(number): \(after.errorText)")
            let now = try states("store\(number)", in: folder)
            #expect(now.values.allSatisfy { $0 == "installed" }, "kill \(number): \(before) became \(now)")
            for (name, state) in before where state == "pending" { #expect(now[name] != nil, "kill \(number): \(name) is lost") }
            try checkElement("store\(number)", in: folder, isSettled: true)
        }
        // The moments were spread: some fell before an installation, some after.
        #expect((seen["pending"] ?? 0) > 0 && (seen["installed"] ?? 0) > 0, "\(seen)")
    }

    private func kept(_ store: String, in folder: TemporaryFolder) throws -> [Kept] {
        guard let data = FileManager.default.contents(atPath: folder("\(store)/credentials.json")) else { return [] }
        return try JSONDecoder().decode([Kept].self, from: data)
    }

    private func states(_ store: String, in folder: TemporaryFolder) throws -> [String: String] {
        let list = try kept(store, in: folder)
        #expect(list.allSatisfy { ["installed", "pending", "failed"].contains($0.installation) })
        #expect(Set(list.map(\.name)).count == list.count)
        return Dictionary(uniqueKeysWithValues: list.map { ($0.name, $0.installation) })
    }

    /// Whatever is on the element belongs to a credential of the list; once settled, the list's credentials are there whole.
    private func checkElement(_ store: String, in folder: TemporaryFolder, isSettled: Bool) throws {
        let path = folder("\(store)/element")
        guard FileManager.default.fileExists(atPath: path) else { return }
        var configuration = SecureElementConfiguration()
        configuration.storePath = path
        let contents = try SimulatedSecureElement(configuration).contents()
        let list = try kept(store, in: folder)
        let instances = list.flatMap(\.instances)
        let known = Set(instances.flatMap { [Array($0.instanceAID), Array($0.packageAID), Array($0.securityDomainAID)] })
        for content in contents { #expect(known.contains(content.aid), "\(Hex.encode(content.aid)) is nobody's") }
        guard isSettled else { return }
        #expect(contents.allSatisfy { $0.state == .installed })
        for credential in list {
            #expect(!credential.instances.isEmpty)
            for instance in credential.instances {
                let found = contents.first { $0.aid == Array(instance.instanceAID) }
                #expect(found?.isPersonalized == true, "\(credential.name)")
            }
        }
    }
}
