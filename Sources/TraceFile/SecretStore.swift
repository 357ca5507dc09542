// SPDX-License-Identifier: MIT

/// Secrets by name and place, from blocks inside a trace, a side file, or text.
public struct SecretStore: Sendable, Equatable {
    /// Everything held, in the order in which it was found.
    public private(set) var records: [SecretRecord] = []
    /// What text said that is more than a name and octets.
    public private(set) var lines: [SecretLine] = []
    /// The session of the file that the secrets came from.
    public var session: String?
    /// Where that file stopped being readable.
    public var damage: TraceDamage?

    private var byName: [String: [Int]] = [:]
    private var byPlace: [Place: [Int]] = [:]

    private struct Place: Hashable {
        var packetID: UInt32
        var interface: UInt16
        var direction: RowDirection
    }

    public init(_ records: [SecretRecord] = [], lines: [SecretLine] = [], session: String? = nil) {
        self.session = session
        add(records)
        add(lines: lines)
    }

    public var isEmpty: Bool { records.isEmpty && lines.isEmpty }

    public mutating func add(_ new: [SecretRecord]) {
        for record in new {
            if record.name.isEmpty {
                let place = Place(packetID: record.packetID, interface: record.interface, direction: record.direction)
                byPlace[place, default: []].append(records.count)
            } else {
                byName[record.name, default: []].append(records.count)
            }
            records.append(record)
        }
    }

    /// Adds what a text said; a line that is a name and octets becomes a record, `mrz`, `can`, `pin` and `puk` under these names.
    public mutating func add(lines new: [SecretLine]) {
        lines += new
        add(new.flatMap(\.records))
    }

    /// This store's secrets before those of `other`.
    public func merging(_ other: SecretStore) -> SecretStore {
        var merged = self
        merged.add(other.records)
        // The records of the other's lines came along already.
        merged.lines += other.lines
        merged.session = session ?? other.session
        merged.damage = damage ?? other.damage
        return merged
    }

    /// The octets of the first secret with this name: `call:1:mrzKey`, `call:1:result`, `bac.seed`.
    public func value(named name: String) -> [UInt8]? { byName[name]?.first.map { records[$0].octets } }

    /// Every secret with this name, in order.
    public func records(named name: String) -> [SecretRecord] { byName[name, default: []].map { records[$0] } }

    /// The octets that a call drew at random: the `index`-th draw with this label, from 0.
    public func entropy(call: Int, label: String, index: Int) -> [UInt8]? {
        records(named: "call:\(call):\(label):\(index)").first { $0.kind == .entropy }?.octets
    }

    /// The keys with a grammar's name: one for each session of the trace that has one.
    public func keys(named name: String) -> [SecretRecord] { records(named: name).filter { $0.kind == .key } }

    /// What stands as `00` in a row, in the order in which it was written.
    public func sealed(packetID: UInt64, interface: Int, direction: RowDirection) -> [SecretRecord] {
        guard let packetID = UInt32(exactly: packetID), let interface = UInt16(exactly: interface) else { return [] }
        let places = byPlace[Place(packetID: packetID, interface: interface, direction: direction), default: []]
        return places.map { records[$0] }.filter { $0.kind == .sealed }
    }

    /// `body` with its sealed octets put back; what does not fit the body is left out.
    public func opened(_ body: [UInt8], packetID: UInt64, interface: Int, direction: RowDirection) -> [UInt8] {
        var body = body
        for record in sealed(packetID: packetID, interface: interface, direction: direction) {
            let start = Int(record.offset)
            guard start <= body.count, record.octets.count <= body.count - start else { continue }
            body.replaceSubrange(start..<start + record.octets.count, with: record.octets)
        }
        return body
    }
}

extension SecretStore: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Counts only: a store that is printed by mistake shows no secret.
    public var description: String { "\(records.count) secrets" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["secrets": records.count]) }
}
