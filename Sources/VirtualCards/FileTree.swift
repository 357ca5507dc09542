// SPDX-License-Identifier: MIT

import Octets

/// The files of a card of ISO/IEC 7816-4 5.3: a master file, dedicated files below it, elementary files in each.
struct FileTree: Sendable {
    /// The first is the master file.
    var dedicated: [DedicatedFile]

    struct Place: Sendable, Equatable {
        var dedicated: Int
        /// nil for the dedicated file itself.
        var elementary: Int?
    }

    subscript(place: Place) -> ElementaryFile? {
        guard let index = place.elementary else { return nil }
        return dedicated[place.dedicated].files[index]
    }

    func elementary(_ identifier: UInt16, in parent: Int) -> Place? {
        dedicated[parent].files.firstIndex { $0.identifier == identifier }.map { Place(dedicated: parent, elementary: $0) }
    }

    func elementary(short identifier: UInt8, in parent: Int) -> Place? {
        dedicated[parent].files.firstIndex { $0.shortIdentifier == identifier }.map { Place(dedicated: parent, elementary: $0) }
    }

    func child(_ identifier: UInt16, of parent: Int) -> Place? {
        dedicated.firstIndex { $0.identifier == identifier && $0.parent == parent }.map { Place(dedicated: $0) }
    }

    /// What SELECT by file identifier finds from `current`: the master file, then what is in the current dedicated
    /// file, then its parent and what is beside it (ISO/IEC 7816-4 11.1.1).
    func find(_ identifier: UInt16, from current: Int) -> Place? {
        if identifier == dedicated[0].identifier { return Place(dedicated: 0) }
        if let place = elementary(identifier, in: current) ?? child(identifier, of: current) { return place }
        guard let parent = dedicated[current].parent else { return nil }
        if dedicated[parent].identifier == identifier { return Place(dedicated: parent) }
        return child(identifier, of: parent)
    }

    /// What a path of file identifiers leads to from `start`.
    func follow(_ path: [UInt16], from start: Int) -> Place? {
        var place = Place(dedicated: start)
        for identifier in path {
            guard place.elementary == nil else { return nil }
            guard let next = child(identifier, of: place.dedicated) ?? elementary(identifier, in: place.dedicated) else {
                return nil
            }
            place = next
        }
        return place
    }

    /// The dedicated files whose names begin with `name`, in order.
    func named(_ name: [UInt8]) -> [Int] {
        dedicated.indices.filter { !dedicated[$0].name.isEmpty && dedicated[$0].name.starts(with: name) }
    }
}

struct DedicatedFile: Sendable {
    var identifier: UInt16
    /// 1 to 16 octets; empty when there is no name.
    var name: [UInt8] = []
    /// The index of the dedicated file above; nil for the master file.
    var parent: Int?
    var files: [ElementaryFile] = []

    /// File control parameters (ISO/IEC 7816-4 7.4).
    var controlParameters: [UInt8] {
        TLV.encode(0x82, [0x38]) + TLV.encode(0x83, identifier.octets)
            + (name.isEmpty ? [] : TLV.encode(0x84, name)) + TLV.encode(0x8A, [0x05])
    }
}

struct ElementaryFile: Sendable {
    enum Content: Sendable {
        case transparent([UInt8])
        /// Linear, of variable size.
        case records([[UInt8]])
    }

    enum Condition: Sendable {
        case always
        case afterVerify
        case never
    }

    var identifier: UInt16
    var shortIdentifier: UInt8?
    var content: Content
    var reading = Condition.always
    var updating = Condition.never

    var controlParameters: [UInt8] {
        var octets: [UInt8]
        switch content {
        case .transparent(let bytes):
            octets = TLV.encode(0x80, UInt16(truncatingIfNeeded: bytes.count).octets) + TLV.encode(0x82, [0x01])
        case .records(let records):
            let longest = UInt16(truncatingIfNeeded: records.map(\.count).max() ?? 0)
            octets = TLV.encode(0x82, [0x04, 0x21] + longest.octets + [UInt8(truncatingIfNeeded: records.count)])
        }
        octets += TLV.encode(0x83, identifier.octets)
        if let shortIdentifier { octets += TLV.encode(0x88, [shortIdentifier << 3]) }
        return octets + TLV.encode(0x8A, [0x05])
    }
}

extension UInt16 {
    /// Two octets, most significant first.
    var octets: [UInt8] { [UInt8(truncatingIfNeeded: self >> 8), UInt8(truncatingIfNeeded: self)] }
}
