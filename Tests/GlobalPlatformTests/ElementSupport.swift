// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import GlobalPlatform
import Synchronization
import TagTransport
import VirtualCards

/// A simulated element and hosts for it.
struct Bench {
    let element: SimulatedSecureElement
    let wire: Wire

    init(_ change: (inout SecureElementConfiguration) -> Void = { _ in }) throws {
        var configuration = SecureElementConfiguration()
        change(&configuration)
        element = try SimulatedSecureElement(configuration)
        wire = Wire(VirtualCardTransport(element.wiredCard()))
    }

    static func keys(_ length: Int = 16, version: UInt8 = 0) throws -> GlobalPlatformKeys {
        try GlobalPlatformKeys(version: version, single: SecureElementConfiguration.testKey(length))
    }

    /// A host in an open channel to the issuer security domain.
    func opened(_ level: SecurityLevel = .all, keys: GlobalPlatformKeys? = nil) async throws -> GlobalPlatformHost {
        let host = GlobalPlatformHost(transport: wire, keys: try keys ?? Self.keys())
        try await host.select()
        try await host.openChannel(level: level)
        return host
    }

    /// Loads and installs a specimen package whole.
    func install(_ package: SpecimenPackage, with host: GlobalPlatformHost) async throws {
        try await host.installForLoad(loadFile: package.aid)
        try await host.load(package.loadFileDataBlock)
        try await host.installForInstall(loadFile: package.aid, module: package.moduleAID, instance: package.instanceAID)
    }
}

/// A transport that keeps what passes and can change it.
final class Wire: ISO7816TagTransporting {
    let card: VirtualCardTransport
    let commands = Mutex<[[UInt8]]>([])
    let exchanges = Mutex<[(command: [UInt8], answer: [UInt8])]>([])
    /// Changes the next command, or its answer.
    let onCommand = Mutex<(@Sendable ([UInt8]) -> [UInt8])?>(nil)
    let onAnswer = Mutex<(@Sendable ([UInt8]) -> [UInt8])?>(nil)

    init(_ card: VirtualCardTransport) { self.card = card }

    var identifier: Data { card.identifier }
    var initialAID: String { "" }
    func send(_ data: Data) async throws -> Data { try await card.send(data) }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        var octets = apdu.octets
        if let change = onCommand.withLock({ change in
            defer { change = nil }; return change
        }) {
            octets = change(octets)
        }
        commands.withLock { $0.append(octets) }
        let sent = octets
        let answer = try await card.sendAPDU(CommandAPDU(bytes: octets))
        exchanges.withLock { $0.append((sent, answer.octets)) }
        guard
            let change = onAnswer.withLock({ change in
                defer { change = nil }; return change
            })
        else { return answer }
        return try ResponseAPDU(bytes: change(answer.octets))
    }
}

/// Gives the same octets at every draw, so that what follows is the same in every run.
struct FixedRandom: RandomSource {
    func octets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8] { [UInt8](repeating: 0x5A, count: count) }
}

/// Keeps the keys that the host tells.
final class KeyLog: KeySink {
    let keys = Mutex<[(String, [UInt8])]>([])
    func log(_ name: String, _ octets: [UInt8]) { keys.withLock { $0.append((name, octets)) } }
}
