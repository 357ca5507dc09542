// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The simulated secure element: runtime environment, issuer security domain, contactless registry, and whatever is installed.
///
/// A command works on a copy of the memory; what it changed is written to the store before its answer goes out, and nothing of it when it
/// is refused, but for the counters that must move.
struct SecureElementMachine: CardMachine {
    /// A contact card that offers T=1 alone, without historical octets.
    static let contactATR: [UInt8] = [0x3B, 0x80, 0x01, 0x81]
    /// ISO/IEC 14443-4 over PC/SC, without historical octets (PC/SC part 3, 3.1.3.2.3.1).
    static let contactlessATR: [UInt8] = [0x3B, 0x80, 0x80, 0x01, 0x01]
    static let channelCount = 4

    let configuration: SecureElementConfiguration
    var memory: ElementMemory
    var random: CardRandom

    // What goes with the power.
    var wired = ElementInterface()
    var contactless = ElementInterface()
    var events: [SecureElementEvent] = []

    // The command in hand.
    var isContactless = false
    var exposed: [[UInt8]] = []
    var channelNumber = 0

    private let store: ElementStore?
    private var written: [String: [UInt8]] = [:]
    private var journalLength = 0
    /// The store refused a change: the element does nothing any more, rather than what would be lost.
    private var isBroken = false

    /// - Throws: ``SecureElementStoreError`` when the configuration names a directory that cannot be used.
    init(_ configuration: SecureElementConfiguration) throws(SecureElementStoreError) {
        self.configuration = configuration
        var memory = Self.delivered(configuration)
        if let path = configuration.storePath {
            let store = try ElementStore(path: path)
            let records = try store.load()
            if !records.isEmpty {
                guard
                    let kept = ElementMemory(
                        records: records, nonVolatileMemory: configuration.nonVolatileMemory,
                        volatileMemory: configuration.volatileMemory)
                else {
                    throw SecureElementStoreError(code: .damaged, path: path, detail: "its records are not those of an element")
                }
                memory = kept
            }
            // A load that had begun when the power went has failed: none of its octets were kept.
            memory.failed += memory.pending.filter { !memory.failed.contains($0) }
            memory.pending = []
            memory.boots &+= 1
            self.store = store
            written = memory.records
            try store.compact(written)
        } else {
            store = nil
        }
        self.memory = memory
        random = CardRandom(seed: configuration.seed, use: "secure-element \(memory.boots)")
        wired.select(ElementNames.issuerDomain)
    }

    var atr: [UInt8] { Self.contactATR }

    mutating func powerOn() { powerOn(isContactless: false) }

    mutating func powerOn(isContactless: Bool) {
        guard !isContactless else {
            deselectAll(contactless)
            contactless = ElementInterface()
            return
        }
        wired = ElementInterface()
        wired.select(ElementNames.issuerDomain)
        contactless = ElementInterface()
        // A load under way is lost with its octets.
        memory.failed += memory.pending.filter { !memory.failed.contains($0) }
        memory.pending = []
        for place in memory.applications.indices { memory.applications[place].applet?.reset() }
        _ = commit()
    }

    mutating func answer(_ command: [UInt8]) -> [UInt8] { answer(command, isContactless: false, instances: []) }

    mutating func answer(_ octets: [UInt8], isContactless: Bool, instances: [[UInt8]]) -> [UInt8] {
        guard !isBroken else { return StatusWord(rawValue: 0x6581).octets }
        self.isContactless = isContactless
        exposed = instances
        let before = memory
        var reply: CardReply
        do throws(StatusWord) {
            reply = try route(try CardCommand(parsing: octets))
        } catch {
            reply = CardReply([], error)
            restore(before)
        }
        guard commit() else {
            isBroken = true
            return StatusWord(rawValue: 0x6581).octets
        }
        // An answer is short: 256 octets of data are the most there can be.
        if reply.data.count > 256 { reply = CardReply([], .wrongLength) }
        return reply.octets
    }

    mutating func takeEvents() -> [SecureElementEvent] {
        defer { events = [] }
        return events
    }

    mutating func deliver(_ token: [UInt8], to aid: [UInt8]) -> Bool {
        guard let place = memory.index(of: aid), !memory.applications[place].isLocked else { return false }
        return memory.applications[place].applet?.authorize(token) ?? false
    }

    var contents: [SecureElementContent] {
        let applications = memory.applications.filter { !ElementNames.delivered.contains($0.aid) }.map {
            SecureElementContent(aid: $0.aid, isLoadFile: false, state: .installed, isPersonalized: $0.isPersonalized)
        }
        func files(_ names: [[UInt8]], _ state: SecureElementContent.State) -> [SecureElementContent] {
            names.map { SecureElementContent(aid: $0, isLoadFile: true, state: state, isPersonalized: true) }
        }
        let loaded = memory.files.map(\.aid).filter { ![ElementNames.domainFile, ElementNames.contactlessFile].contains($0) }
        return applications + files(loaded, .installed) + files(memory.pending, .pending) + files(memory.failed, .failed)
    }

    // MARK: - Keeping

    /// Writes what changed. False when it could not be written.
    private mutating func commit() -> Bool {
        guard let store else { return true }
        let records = memory.records
        let changed = records.filter { written[$0.key] != $0.value }
        let removed = written.keys.filter { records[$0] == nil }
        guard !changed.isEmpty || !removed.isEmpty else { return true }
        do throws(SecureElementStoreError) {
            journalLength = try store.append(changed, removed: removed)
            written = records
            if journalLength > 262_144 {
                try store.compact(records)
                journalLength = 0
            }
            return true
        } catch {
            return false
        }
    }

    /// Undoes a refused command, but for the sequence counters and what a load that was ended leaves behind.
    private mutating func restore(_ before: ElementMemory) {
        var restored = before
        for application in memory.applications {
            guard let place = restored.index(of: application.aid) else { continue }
            for set in application.keySets {
                guard let index = restored.applications[place].keySets.firstIndex(where: { $0.version == set.version }) else {
                    continue
                }
                restored.applications[place].keySets[index].counter = set.counter
            }
            if application.applet != nil { restored.applications[place].applet = application.applet }
        }
        restored.pending = memory.pending
        restored.failed = memory.failed
        memory = restored
    }

    private mutating func deselectAll(_ interface: ElementInterface) {
        for channel in interface.channels {
            guard let aid = channel?.selected, let place = memory.index(of: aid) else { continue }
            memory.applications[place].applet?.deselect()
        }
    }

    private static func delivered(_ configuration: SecureElementConfiguration) -> ElementMemory {
        var memory = ElementMemory(
            nonVolatileMemory: configuration.nonVolatileMemory, volatileMemory: configuration.volatileMemory)
        // Security domain, card lock, terminate, reset and CVM; trusted path to global service; receipts, ciphered load, contactless activation.
        var issuer = ElementApplication(
            aid: ElementNames.issuerDomain, file: ElementNames.domainFile, module: ElementNames.domainModule,
            privileges: 0x9E_FE80, state: ElementState.secured, domain: ElementNames.issuerDomain)
        let isAES = if case .scp03 = configuration.channel { true } else { false }
        issuer.keySets = [
            ElementKeySet(
                version: configuration.keyVersion, isAES: isAES,
                keys: [configuration.encryptionKey, configuration.macKey, configuration.dataKey])
        ]
        let registry = ElementApplication(
            aid: ElementNames.contactlessRegistry, file: ElementNames.contactlessFile, module: ElementNames.contactlessRegistry,
            privileges: 0x00_0020, state: ElementState.selectable, domain: ElementNames.issuerDomain)
        memory.applications = [issuer, registry]
        memory.files = [
            ElementFile(
                aid: ElementNames.domainFile, version: [0x01, 0x00], modules: [ElementNames.domainModule],
                domain: ElementNames.issuerDomain, length: 0),
            ElementFile(
                aid: ElementNames.contactlessFile, version: [0x01, 0x00], modules: [ElementNames.contactlessRegistry],
                domain: ElementNames.issuerDomain, length: 0),
        ]
        return memory
    }
}

/// One interface and its logical channels.
struct ElementInterface: Sendable {
    var channels: [ElementLogicalChannel?]

    init() {
        channels =
            [ElementLogicalChannel()] + [ElementLogicalChannel?](repeating: nil, count: SecureElementMachine.channelCount - 1)
    }

    mutating func select(_ aid: [UInt8]) { channels[0] = ElementLogicalChannel(selected: aid) }
}

/// What is selected on a logical channel, and what goes when something else is.
struct ElementLogicalChannel: Sendable {
    var selected: [UInt8]?
    var isPaymentEnvironment = false
    var secure: ElementChannel?
    var load: ElementLoad?
    var personalization: ElementPersonalization?
    /// The entries of GET STATUS that did not fit, and what they were an answer to.
    var listing: (command: UInt8, scope: UInt8, entries: [[UInt8]])?
    /// STORE DATA to the security domain itself: the next block.
    var nextBlock: UInt8 = 0
}

/// A load between INSTALL [for load] and its last block.
struct ElementLoad: Sendable {
    var file: [UInt8]
    var domain: [UInt8]
    var hash: [UInt8]
    var block: UInt8 = 0
    var octets: [UInt8] = []
}

/// A personalization between INSTALL [for personalization] and its last block: works on a copy of the applet.
struct ElementPersonalization: Sendable {
    var aid: [UInt8]
    var applet: any ElementApplet
    var block: UInt8 = 0
}
