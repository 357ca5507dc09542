// SPDX-License-Identifier: MIT

import GrammarRuntime
import TraceFile

/// One card connection as its rows tell it: the grammars' machine, the file at hand, and the keys as they come to hold.
package struct CardReading: Sendable {
    /// What one frame gave.
    package struct Reading {
        package var outcome: Decoder.Outcome
        /// The exchange of the grammars, by number.
        package var exchange: Int?
        /// What the exchange calls itself, when another kind of message carried it.
        var headline: String?
        /// A layer began with this frame: both sides agreed on keys.
        var hasAgreed = false
    }

    struct Pending: Sendable {
        var packet: UInt64?
        var exchange: Int?
        var view: CommandView?
        var isProtected: Bool
    }

    /// The decoder; let nobody else hold it while a frame is pushed, or it is copied.
    package var decoder: Decoder
    var files = FileTracker()
    var pending: Pending?
    /// Whether the last commands were DESFire's without an APDU around them.
    var speaksNative = false
    private(set) var checked = 0
    private(set) var held = 0

    private let keys: KeyTable
    private let native: GrammarIndex.NativeFields
    private let authentications: Set<Int32>
    /// Of the keys that belong to an application and number, those that the last authentication may have used; nil before one.
    private var allowed: [KeyTable.Owned]?
    /// Which of the table's keys were given last, by name.
    private var given: [String: Int] = [:]

    /// The sessions that have begun, as they were told last.
    private var told: (states: [Int], layers: [Int], sessions: [(name: String, state: String)]) = ([], [], [])

    package init(_ index: GrammarIndex, _ keys: KeyTable, triesNearMisses: Bool) {
        decoder = Decoder(index.program)
        decoder.triesNearMisses = triesNearMisses
        self.keys = keys
        native = index.nativeFields
        authentications = index.authentications
        for first in keys.first { decoder.give(first.name, first.octets) }
    }

    /// The sessions that are not where they begin, and the layers that are open.
    mutating func sessions(_ index: GrammarIndex) -> [(name: String, state: String)] {
        let isSame = decoder.machine.state.sessions == told.states && decoder.machine.state.layers == told.layers
        if isSame { return told.sessions }
        let state = decoder.machine.state
        var sessions: [(name: String, state: String)] = []
        // What is selected on a DESFire is a help of its channels, not told beside every other card's sessions.
        for (number, session) in index.program.sessions.enumerated()
        where state.sessions[number] != session.initial && session.name != "Selected" {
            sessions.append((session.name, session.states[state.sessions[number]]))
        }
        for layer in state.layers { sessions.append((index.program.layers[layer].grammar, "open")) }
        told = (state.sessions, state.layers, sessions)
        return sessions
    }

    /// The card was reset, removed or newly connected.
    package mutating func reset(_ event: String) -> Decoder.Outcome {
        files.reset()
        pending = nil
        speaksNative = false
        return decoder.push(event: event == "removal" ? "removal" : "reset")
    }

    package mutating func push(request frame: [UInt8], entry: Int, packet: UInt64?) -> Reading {
        let number = Int(clamping: packet ?? 0)
        giveOthers(upTo: packet)
        // A request that was never answered says nothing against the next: its error has a row of its own.
        decoder.machine.state.pending = nil
        let outcome = decoder.push(request: frame, entry: entry, exchange: number)
        count(outcome)
        var reading = Reading(outcome: outcome, exchange: outcome.exchange)
        if let exchange = outcome.exchange, outcome.carrier != nil { reading.headline = decoder.headline(exchange) }
        return reading
    }

    package mutating func push(response frame: [UInt8], entry: Int, packet: UInt64?) -> Reading {
        let number = Int(clamping: packet ?? 0)
        let layers = decoder.machine.state.layers
        giveOwned()
        let before = keys.hasChoice ? decoder : nil
        var outcome = decoder.push(response: frame, entry: entry, exchange: number)
        if let before, decoder.hasFailure(outcome) {
            // Which of several secrets the session used, only a check that depends on it can tell.
            for candidate in keys.candidates where isAllowed(candidate) {
                var other = before
                other.give(candidate.name, candidate.octets)
                let again = other.push(response: frame, entry: entry, exchange: number)
                guard !other.hasFailure(again) else { continue }
                decoder = other
                outcome = again
                break
            }
        }
        count(outcome)
        let begun = decoder.machine.state.layers.filter { !layers.contains($0) && decoder.hasKeys($0) }
        if begun.isEmpty { giveSession(packet) }
        return Reading(outcome: outcome, exchange: outcome.exchange, hasAgreed: !begun.isEmpty)
    }

    private mutating func count(_ outcome: Decoder.Outcome) {
        for annotation in decoder.annotations[outcome.annotations] where authentications.contains(annotation.check) {
            guard annotation.code == .held || annotation.code == .failed else { continue }
            checked += 1
            if annotation.code == .held { held += 1 }
        }
    }

    // MARK: - Keys

    /// Keys that were given for one application and number of a DESFire card hold in an authentication with just these.
    private mutating func giveOwned() {
        guard !keys.owned.isEmpty, let code = decoder.octets(inSlot: native.code)?.first,
            [0x0A, 0x1A, 0xAA, 0x71, 0x77].contains(code)
        else { return }
        let number = decoder.octets(inSlot: native.parameters)?.first
        allowed = keys.owned.filter { key in
            (application.map { $0 == key.application } ?? true) && (number.map { $0 & 0x1F == key.number } ?? true)
        }
        for name in ["desfire.master", "desfire.key"] where !keys.isFree(name) {
            decoder.give(name, allowed?.first { $0.name == name }?.octets ?? [])
        }
    }

    private func isAllowed(_ candidate: KeyTable.Key) -> Bool {
        guard let allowed, keys.owned.contains(where: { $0.isSame(candidate) }) else { return true }
        return allowed.contains { $0.isSame(candidate) }
    }

    /// The application that was selected by DESFire's own command; nil when nobody saw that.
    private var application: [UInt8]? {
        guard native.application >= 0, case .octets(let octets) = decoder.machine.state.variables[native.application].value
        else { return nil }
        return octets.count == 3 ? octets : nil
    }

    /// Secrets that the recorder kept with an exchange, at that exchange.
    private mutating func giveOthers(upTo packet: UInt64?) {
        guard let packet else { return }
        for (name, timed) in keys.timed {
            guard let last = timed.last(upTo: packet), given[name] != last else { continue }
            given[name] = last
            decoder.give(name, timed[last].octets)
        }
    }

    /// Session keys hold after the exchange that they were kept with.
    private mutating func giveSession(_ packet: UInt64?) {
        guard let packet, let number = UInt32(exactly: packet), let session = keys.sessions[number] else { return }
        for key in session { decoder.give(key.name, key.octets) }
        // A layer whose keys nobody knows has begun with the exchange; these are they.
        let known = decoder.machine.state.layers.filter { decoder.hasKeys($0) }
        decoder.machine.state.layers = known
        decoder.machine.state.spent.removeAll()
    }
}

/// The keys of a store by when they hold.
package struct KeyTable: Sendable {
    struct Key: Sendable {
        var packet: UInt32
        var name: String
        var octets: [UInt8]
    }

    /// A key that a line of text gives for one application and key number.
    struct Owned: Sendable {
        var name: String
        var octets: [UInt8]
        var application: [UInt8]
        var number: UInt8

        func isSame(_ key: Key) -> Bool { name == key.name && octets == key.octets }
    }

    /// How many secrets are tried on one message: a hostile file may hold any number.
    private static let mostCandidates = 64

    /// What is given before the first exchange: the first of each name.
    private(set) var first: [Key] = []
    /// Secrets that are no session keys, by name in order of their exchanges.
    private(set) var timed: [String: [Key]] = [:]
    /// Session keys by the exchange after which they hold.
    private(set) var sessions: [UInt32: [Key]] = [:]
    /// Different octets for one name.
    private(set) var candidates: [Key] = []
    var hasChoice: Bool { candidates.count > 1 }
    private(set) var owned: [Owned] = []
    /// Names for which there are keys that nobody tied to an application.
    private var free: Set<String> = []

    /// Whether there are keys of this name that may be anybody's.
    func isFree(_ name: String) -> Bool { free.contains(name) }

    package init(_ secrets: SecretStore, _ index: GrammarIndex) {
        for case .desfire(let secret) in secrets.lines {
            owned.append(
                Owned(
                    name: secret.isDiversified ? "desfire.master" : "desfire.key", octets: secret.octets,
                    application: secret.application, number: secret.keyNumber))
        }
        for name in ["desfire.master", "desfire.key"] {
            let tied = owned.count { $0.name == name }
            if secrets.keys(named: name).count > tied { free.insert(name) }
        }
        for name in index.otherSecrets {
            var known: Set<[UInt8]> = []
            let records = secrets.keys(named: name)
            if let record = records.first { first.append(Key(packet: 0, name: name, octets: record.octets)) }
            for record in records where known.insert(record.octets).inserted {
                let key = Key(packet: record.packetID, name: name, octets: record.octets)
                if record.packetID > 0 { timed[name, default: []].append(key) }
                if candidates.count < Self.mostCandidates { candidates.append(key) }
            }
            if known.count < 2 { candidates.removeAll { $0.name == name } }
        }
        for name in timed.keys { timed[name]?.sort { $0.packet < $1.packet } }
        for name in index.layerSecrets {
            for record in secrets.keys(named: name) {
                let key = Key(packet: record.packetID, name: name, octets: record.octets)
                if record.packetID == 0 {
                    if !first.contains(where: { $0.name == name }) { first.append(key) }
                } else if sessions[record.packetID]?.contains(where: { $0.name == name }) != true {
                    sessions[record.packetID, default: []].append(key)
                }
            }
        }
    }
}

extension [KeyTable.Key] {
    /// The last key of an exchange up to `packet`.
    fileprivate func last(upTo packet: UInt64) -> Int? {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if UInt64(self[middle].packet) <= packet { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? low - 1 : nil
    }
}

extension Decoder {
    /// Whether everything that a layer needs is known.
    func hasKeys(_ layer: Int) -> Bool {
        program.layers[layer].parameters.allSatisfy { machine.state.variables[$0].value != .none }
    }

    func hasFailure(_ outcome: Outcome) -> Bool {
        annotations[outcome.annotations].contains { $0.code == .failed || $0.code == .unopened }
    }
}
