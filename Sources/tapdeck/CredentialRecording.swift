// SPDX-License-Identifier: MIT

import CardSockets
import Flows
import Foundation
import Glibc
import Octets
import PCSC
import SecureElementCredential
import Synchronization
import TagTransport
import TraceFile
import VirtualCards

/// `record credential steps.txt`: where its secure element, its credentials and its contactless reader are.
struct CredentialRecording: Sendable {
    static let specs = [
        OptionSpec("--rules", .required("RULES"), "ios27.1 (default) or ios26.1: how the framework's open points are settled"),
        OptionSpec("--real-time", .none, "let wait wait; else a test clock goes on by itself"),
        OptionSpec("--element", .required("simulated|reader"), "the secure element of a credential script (default simulated)"),
        OptionSpec("--store", .required("DIR"), "what is on the simulated element, and the names of credentials"),
        OptionSpec("--vpcd", .required("HOST:PORT"), "the virtual reader that meets emulated cards (default 127.0.0.1:35963)"),
    ]

    let argumentsJSON: String
    let transport: any NFCTagTransport
    let world: CredentialWorld

    static func open(_ arguments: Arguments, _ terminal: Terminal) async throws -> CredentialRecording {
        guard arguments.operands.count == 2 else {
            throw Failure.usage("credential takes one script: tapdeck record credential steps.txt")
        }
        let path = arguments.operands[1]
        let script = try FileText.read(path, limit: 1 << 20)
        do { _ = try CredentialScript(script) } catch { throw Failure(.wrongUsage, "\(path): \(error)") }
        if let rules = arguments.value("--rules"), CredentialRules(named: rules) == nil {
            let names = CredentialRules.all.map(\.name)
            throw Failure.usage(
                "unknown rules \(rules)\(Nearest.suggestion(for: rules, among: names))",
                "there are \(names.joined(separator: " and "))")
        }
        let key = try arguments.value("--key").map {
            try SecretValue.read($0, option: "--key", prompt: "key of the issuer security domain", terminal)
        }
        let host = try VirtualReaderHost(arguments.value("--vpcd"), note: { terminal.note($0) })
        var flow = CredentialFlow.Arguments(
            script: script, rules: arguments.value("--rules"), realTime: arguments.has("--real-time") ? true : nil, key: key,
            configurations: SpecimenProducts.all)
        switch arguments.value("--element") ?? "simulated" {
        case "simulated":
            return try await simulated(&flow, arguments, host)
        case "reader":
            let store = arguments.value("--store").map { CredentialStore(folder: $0) }
            flow.credentials = try store?.load() ?? []
            let transport =
                arguments.value("--card") != nil
                ? try await CardSource.open(arguments, terminal)
                : try await CardSource.reader(arguments, terminal) { try await SessionReader.open($0, $1) }
            return CredentialRecording(
                argumentsJSON: try CanonicalJSON.encode(flow), transport: transport,
                world: CredentialWorld(
                    host: host, reader: host.work, holding: transport as? SessionReader, save: { store?.save($0) }))
        case let other: throw Failure.usage("--element takes simulated or reader, not \(other)")
        }
    }

    private static func simulated(
        _ flow: inout CredentialFlow.Arguments, _ arguments: Arguments, _ host: VirtualReaderHost
    ) async throws -> CredentialRecording {
        var configuration = SecureElementConfiguration()
        if let key = flow.key {
            guard let octets = try? Hex.decode(key), [16, 24, 32].contains(octets.count) else {
                throw Failure.usage("--key takes 16, 24 or 32 bytes in hexadecimal")
            }
            (configuration.encryptionKey, configuration.macKey, configuration.dataKey) = (octets, octets, octets)
        } else {
            flow.key = Hex.encode(configuration.encryptionKey)
        }
        let store = arguments.value("--store").map { CredentialStore(folder: $0) }
        if let store { configuration.storePath = try store.elementFolder() }
        let element: SimulatedSecureElement
        do { element = try SimulatedSecureElement(configuration) } catch { throw Failure(.outside, "--store: \(error)") }
        let transport = VirtualCardTransport(element.wiredCard())
        let broker = ElementBroker(element: element)
        let contactless = ContactlessInterface(
            card: { element.contactlessCard(instances: $0) },
            listen: { hear in element.onEvent { hear($0.instanceAID, $0.data) } })
        flow.hasContactlessInterface = true
        flow.credentials = try store?.load() ?? []
        // A fresh element has one credential, so that a script need not begin with an installation.
        if flow.credentials.isEmpty, store?.isNew ?? true {
            var first = flow
            first.script = "startSession\nprovisionCredential wallet \"wallet\"\nwait 2 s\n"
            first.rules = nil
            first.realTime = nil
            first.hasContactlessInterface = nil
            let outcome = try await CredentialFlow.run(first, over: transport) { _ in }
            flow.credentials = outcome.credentials
            store?.save(outcome.credentials)
        }
        return CredentialRecording(
            argumentsJSON: try CanonicalJSON.encode(flow), transport: transport,
            world: CredentialWorld(
                host: host, reader: host.work, broker: broker, contactless: contactless, save: { store?.save($0) }))
    }
}

/// The person's authorisation on its way to the simulated element's applets.
private struct ElementBroker: AuthorizationBroker {
    let element: SimulatedSecureElement

    func deliverAuthorization(to instances: [[UInt8]]) async {
        for instance in instances { element.deliver(authorization: [0x01], to: instance) }
    }
}

/// What can be provisioned onto the simulated element.
enum SpecimenProducts {
    static let all: [ProductConfiguration] = [
        product("wallet", 1, .identity, name: [0xF0, 0x00, 0x00, 0x00, 0x01], personalization: [identity]),
        product("payment", 2, .payment, personalization: payment, domain: [0xF0, 0x54, 0x44, 0x53, 0x44, 0x01]),
        product("identity", 3, .identity, personalization: [identity]),
        product("loyalty", 4, .loyalty, personalization: [[0xDF, 0x03, 0x04, 0x00, 0x00, 0x00, 0x64]], events: [0x20, 0x30]),
    ]

    /// A number of the range for tests (ISO/IEC 7812), and a key.
    private static let payment: [[UInt8]] = [
        [0x5A, 0x08, 0x99, 0x99, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01],
        [0xDF, 0x01, 0x10] + SecureElementConfiguration.testKey(16),
    ]
    private static let identity: [UInt8] = [0xDF, 0x02, 0x10] + Array("TAPDECK SPECIMEN".utf8)

    private static func product(
        _ word: String, _ number: UInt8, _ package: SpecimenPackage, name: [UInt8]? = nil, personalization: [[UInt8]] = [],
        events: [UInt8] = [],
        domain: [UInt8]? = nil
    ) -> ProductConfiguration {
        let identifier = UUID(uuid: (0x54, 0x44, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, number))
        return ProductConfiguration(
            identifier: identifier, name: word, packageAID: package.aid, loadFile: package.loadFileDataBlock,
            instances: [
                .init(
                    aid: name ?? package.instanceAID, moduleAID: package.moduleAID, personalization: personalization,
                    transactionInstructions: events)
            ], domain: domain.map { .init(aid: $0) })
    }
}

/// The folder of `--store`: the element's own records, and `credentials.json` with what the host knows.
struct CredentialStore: Sendable {
    let folder: String
    private var path: String { folder + "/credentials.json" }

    var isNew: Bool { access(path, F_OK) != 0 }

    func elementFolder() throws -> String {
        if mkdir(folder, 0o700) != 0, errno != EEXIST {
            throw Failure(.outside, "\(folder) cannot be made: \(String(cString: strerror(errno)))")
        }
        return folder + "/element"
    }

    func load() throws -> [StoredCredential] {
        guard !isNew else { return [] }
        let text = try FileText.read(path, limit: 1 << 24)
        do { return try JSONDecoder().decode([StoredCredential].self, from: Data(text.utf8)) } catch {
            throw Failure(.outside, "\(path) is no list of credentials")
        }
    }

    /// The new list takes the old one's place as a whole, and is on the disk then.
    func save(_ list: [StoredCredential]) {
        guard let data = try? JSONEncoder().encode(list) else { return }
        let fresh = path + ".new"
        let descriptor = Glibc.open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        let octets = Array(data)
        var written = 0
        while written < octets.count {
            let count = octets[written...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                close(descriptor)
                return
            }
            written += count
        }
        fsync(descriptor)
        close(descriptor)
        rename(fresh, path)
    }
}

/// A slot of the virtual reader, in which the emulated card stands for as long as the state lasts.
final class VirtualReaderHost: EmulationHost {
    private let address: String
    private let port: UInt16
    private let isAsked: Bool
    private let note: @Sendable (String) -> Void
    private let link = Mutex<VPCDLink?>(nil)
    private let lastCommand: LastCommand

    /// - Parameter text: `HOST:PORT`; the driver's own when nil, and then a reader that is not there is no matter.
    init(_ text: String?, note: @escaping @Sendable (String) -> Void) throws {
        let parts = (text ?? "127.0.0.1:35963").split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let port = UInt16(parts[1]) else { throw Failure.usage("--vpcd takes HOST:PORT") }
        address = String(parts[0])
        self.port = port
        isAsked = text != nil
        self.note = note
        lastCommand = LastCommand()
    }

    func present(_ card: EmulatedCard) async {
        let seen = CountingCard(card, lastCommand)
        let new = VPCDLink(card: seen, host: address, port: port)
        do {
            try new.start()
            link.withLock { $0 = new }
        } catch {
            if isAsked { note("no virtual reader at \(address):\(port): \(error)") }
        }
    }

    func withdraw() async {
        let old = link.withLock { link in
            defer { link = nil }
            return link
        }
        guard let old else { return }
        // Stopping waits for the serving thread, which may wait for a task: it must not hold one of their threads.
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                old.stop()
                continuation.resume()
            }
        }
    }

    /// Until a program has talked to the card, been quiet for a second and a half and let it go, or the time is over.
    @Sendable func work(_ card: EmulatedCard, _ seconds: Int, _ step: Int) async {
        let start = ContinuousClock.now
        lastCommand.clear()
        guard link.withLock({ $0 != nil }) else {
            return note("no program can meet the card: no virtual reader at \(address):\(port)")
        }
        while ContinuousClock.now - start < .seconds(seconds) {
            try? await Task.sleep(for: .milliseconds(50))
            if Task.isCancelled { return }
            if let last = lastCommand.time, ContinuousClock.now - last > .milliseconds(1_500), await !isHeld(card.atr) { return }
        }
    }

    /// Whether pcscd says that a program has a card of this kind; false without a pcscd.
    private func isHeld(_ atr: [UInt8]) async -> Bool {
        guard let statuses = try? await PCSCContext.open().readerStatuses() else { return false }
        return statuses.contains { $0.atr == atr && ($0.flags.contains(.inUse) || $0.flags.contains(.exclusive)) }
    }
}

/// When the reader last sent a command.
private final class LastCommand: Sendable {
    private let value = Mutex<ContinuousClock.Instant?>(nil)
    var time: ContinuousClock.Instant? { value.withLock { $0 } }
    func clear() { value.withLock { $0 = nil } }
    func now() { value.withLock { $0 = ContinuousClock.now } }
}

private final class CountingCard: CardEnd, Sendable {
    private let card: EmulatedCard
    private let last: LastCommand

    init(_ card: EmulatedCard, _ last: LastCommand) {
        self.card = card
        self.last = last
    }

    var atr: [UInt8] { card.atr }
    func powerOn() { card.powerOn() }
    func powerOff() { card.powerOff() }

    func exchange(_ command: [UInt8]) -> CardAnswer {
        last.now()
        defer { last.now() }
        return card.exchange(command)
    }
}
