// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import GlobalPlatform
import Octets
import Synchronization
import TagTransport
import TestSupport
import Testing
import TraceFile
import VirtualCards

/// A provisioning that is killed at any moment leaves a store in which everything is installed, pending or failed.
@Suite(.serialized) struct ElementCrashTests {
    /// The commands of a whole provisioning: three packages, loaded, installed, personalized; keys of a domain of its own; a deletion.
    private static func commands() async throws -> [[UInt8]] {
        let element = try SimulatedSecureElement()
        let tap = Tap(VirtualCardTransport(element.wiredCard()))
        let key = SecureElementConfiguration.testKey(16)
        try await CardEnvironment.with(CardEnvironment(random: SameOctets())) {
            let host = GlobalPlatformHost(transport: tap, keys: try GlobalPlatformKeys(single: key))
            try await host.select()
            try await host.openChannel(level: .all)
            for package in SpecimenPackage.all {
                try await host.installForLoad(loadFile: package.aid)
                try await host.load(package.loadFileDataBlock)
                try await host.installForInstall(loadFile: package.aid, module: package.moduleAID, instance: package.instanceAID)
                try await host.installForPersonalization(package.instanceAID)
                try await host.storeData(blocks(package))
            }
            try await host.openChannel(level: .all)
            try await host.delete(SpecimenPackage.loyalty.aid, related: true)
        }
        return tap.commands.withLock { $0 }
    }

    private static func blocks(_ package: SpecimenPackage) -> [[UInt8]] {
        let key = TLV.encode(0xDF01, SecureElementConfiguration.testKey(16))
        switch package {
        case .payment: return [TLV.encode(0x5A, [0x47, 0x61, 0x73, 0x90]), key]
        case .identity: return text.map { TLV.encode(0xDF02, Array($0.utf8)) } + [key]
        default: return [TLV.encode(0xDF03, [0, 0, 0x01, 0x00])]
        }
    }

    private static let text = (0..<6).map { String(repeating: "\($0)", count: 100) }

    @Test func aKillAtAnyMomentOfProvisioningLeavesNothingHalfThere() async throws {
        let commands = try await Self.commands()
        let folder = try TemporaryFolder()
        try folder.write(commands.map { Hex.encode($0) }.joined(separator: "\n"), "script.txt")
        func arguments(_ number: Int) -> [String] {
            let card = "virtual:secure-element?store=store\(number)"
            return ["record", "-o", "\(number).pcapng", "--quiet", "--card", card, "apdu", "script.txt"]
        }
        // Undisturbed, it goes through, and says how long its trace becomes.
        let whole = try await Binary.run(arguments(0), in: folder)
        let length = try folder.octets("0.pcapng").count
        #expect(whole.end == .status(0), "\(whole.errorText)")
        #expect(!whole.outputText.split(separator: "\n").contains { !$0.contains("9000") })
        #expect(try await check(folder("store0"), answered: commands.count, of: commands) == 2)

        var generator = SeededGenerator(seed: 61)
        var outcomes = Set<Int>()
        for number in 1...100 {
            try Binary.runAndKill(
                arguments(number), in: folder, onceLongerThan: Int.random(in: 0...length, using: &generator),
                trace: "\(number).pcapng",
                after: UInt32.random(in: 0...4_000, using: &generator))
            let trace = try? Trace.load(path: folder("\(number).pcapng"))
            // Rows of commands and answers take turns; an answer that was written was given.
            let answered = (trace?.rows.filter { $0.dissector == "iso7816" && $0.direction == .received }.count ?? 0) - 1
            outcomes.insert(try await check(folder("store\(number)"), answered: max(0, answered), of: commands))
        }
        #expect(outcomes.count > 1)
    }

    /// Opens what the kill left, as a card after the loss of power, and goes on with it.
    ///
    /// - Returns: how many applications there are.
    private func check(_ path: String, answered: Int, of commands: [[UInt8]]) async throws -> Int {
        var configuration = SecureElementConfiguration()
        configuration.storePath = path
        let element = try SimulatedSecureElement(configuration)
        let contents = element.contents()
        #expect(Set(contents.map(\.aid)).count == contents.count)
        // Power has been off: nothing is pending, and what was, has failed.
        #expect(contents.allSatisfy { $0.state != .pending })
        let transport = VirtualCardTransport(element.wiredCard())
        let key = SecureElementConfiguration.testKey(16)
        let host = GlobalPlatformHost(transport: transport, keys: try GlobalPlatformKeys(single: key))
        try await host.select()
        let counter = try await host.openChannel(level: .all).sequenceCounter
        // No counter comes twice: each answered INITIALIZE UPDATE is counted.
        let opened = commands.prefix(answered).filter { $0[1] == 0x50 }.count
        #expect(counter.reduce(0) { $0 << 8 | Int($1) } > opened)

        let applications = try await host.getStatus(.applications).filter { $0.loadFileAID?.first == 0xF0 }
        for package in SpecimenPackage.all {
            let isLoaded = try await !host.getStatus(.loadFiles, matching: package.aid).isEmpty
            let isInstalled = applications.contains { $0.aid == package.instanceAID }
            #expect(!isInstalled || isLoaded)
            #expect(contents.first { $0.aid == package.aid }.map { ($0.state == .installed) == isLoaded } ?? !isLoaded)
        }
        // What was answered is there: counted by the INSTALL commands of the script before the deletion.
        if answered < commands.count - 1 {
            let installs = commands.prefix(answered).filter { $0[1] == 0xE6 && $0[2] == 0x0C }.count
            #expect(applications.count >= min(installs, 2), "\(answered) answered")
        }
        // The identity's data came in six blocks: all of it or none.
        let isPersonalized = contents.first { $0.aid == SpecimenPackage.identity.instanceAID }?.isPersonalized
        if let isPersonalized {
            try await host.select(SpecimenPackage.identity.instanceAID)
            let read = try await host.exchange(CommandAPDU(cla: 0x00, ins: 0xB0, p1: 0x01, p2: 0xF4, le: 0x64))
            #expect(isPersonalized ? [UInt8](read.data) == Array(Self.text[5].utf8) : read.statusWord == 0x6985)
        }
        // And the provisioning can be done again, over what is there.
        try await host.select()
        try await host.openChannel(level: .mac)
        for package in SpecimenPackage.all where !contents.contains(where: { $0.aid == package.aid && $0.state == .installed }) {
            try await host.installForLoad(loadFile: package.aid)
            try await host.load(package.loadFileDataBlock)
        }
        #expect(element.contents().filter { $0.isLoadFile }.map(\.state) == [.installed, .installed, .installed])
        return applications.count
    }
}

private struct SameOctets: RandomSource {
    func octets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8] { [UInt8](repeating: 0x5A, count: count) }
}

/// Keeps the commands that pass.
private final class Tap: ISO7816TagTransporting {
    let card: VirtualCardTransport
    let commands = Mutex<[[UInt8]]>([])
    init(_ card: VirtualCardTransport) { self.card = card }
    var identifier: Data { card.identifier }
    var initialAID: String { "" }
    func send(_ data: Data) async throws -> Data { try await card.send(data) }
    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        commands.withLock { $0.append(apdu.octets) }
        return try await card.sendAPDU(apdu)
    }
}
