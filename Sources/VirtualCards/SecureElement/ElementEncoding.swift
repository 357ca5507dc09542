// SPDX-License-Identifier: MIT

import Octets

/// The octets in which an element's memory is kept: records of one thing each, by name, so that a change writes what changed.
///
/// Every field is two octets of length and its content; a list is its fields in one. Format 1.
extension ElementMemory {
    /// Records by name: `card`, `file:AID`, `app:AID`.
    var records: [String: [UInt8]] {
        var records: [String: [UInt8]] = [:]
        var card = FieldWriter()
        card.add([cardState])
        card.add(number: UInt64(boots), octets: 4)
        card.add(list: pending)
        card.add(list: failed)
        card.add(list: applications.map(\.aid))
        card.add(list: files.map(\.aid))
        records["card"] = card.octets
        for file in files {
            var writer = FieldWriter()
            writer.add(file.aid)
            writer.add(file.version)
            writer.add(list: file.modules)
            writer.add(file.domain)
            writer.add(number: UInt64(max(0, file.length)), octets: 4)
            records["file:" + Hex.encode(file.aid)] = writer.octets
        }
        for application in applications { records["app:" + Hex.encode(application.aid)] = Self.octets(of: application) }
        return records
    }

    /// - Returns: nil when the records are not those of an element.
    init?(records: [String: [UInt8]], nonVolatileMemory: Int, volatileMemory: Int) {
        self.init(nonVolatileMemory: nonVolatileMemory, volatileMemory: volatileMemory)
        guard let octets = records["card"] else { return nil }
        do throws(OutOfOctets) {
            var card = FieldReader(octets)
            cardState = try card.octet()
            boots = UInt32(truncatingIfNeeded: try card.number())
            pending = try card.list()
            failed = try card.list()
            let applicationNames = try card.list()
            let fileNames = try card.list()
            for name in fileNames {
                guard let octets = records["file:" + Hex.encode(name)] else { return nil }
                var reader = FieldReader(octets)
                files.append(
                    ElementFile(
                        aid: try reader.field(), version: try reader.field(), modules: try reader.list(),
                        domain: try reader.field(), length: Int(try reader.number() & 0x7FFF_FFFF)))
            }
            for name in applicationNames {
                guard let octets = records["app:" + Hex.encode(name)], let application = try Self.application(octets) else {
                    return nil
                }
                applications.append(application)
            }
        } catch {
            return nil
        }
        guard applications.first?.aid == ElementNames.issuerDomain else { return nil }
    }

    private static func octets(of application: ElementApplication) -> [UInt8] {
        var writer = FieldWriter()
        for field in [application.aid, application.file, application.module, application.domain, application.head] {
            writer.add(field)
        }
        writer.add(number: UInt64(application.privileges), octets: 3)
        writer.add([application.state, application.contactless, application.isPersonalized ? 1 : 0])
        writer.add(number: UInt64(application.updates), octets: 2)
        writer.add(number: UInt64(max(0, application.nonVolatile)), octets: 4)
        writer.add(number: UInt64(max(0, application.volatile)), octets: 4)
        writer.add(
            list: application.keySets.map { set in
                var inner = FieldWriter()
                inner.add([set.version, set.isAES ? 1 : 0])
                inner.add(number: UInt64(set.counter), octets: 4)
                inner.add(list: set.keys)
                return inner.octets
            })
        writer.add(
            list: application.objects.map { object in
                [UInt8(truncatingIfNeeded: object.tag >> 8), UInt8(truncatingIfNeeded: object.tag)] + object.value
            })
        writer.add(list: application.applet.map { [$0.stored] } ?? [])
        return writer.octets
    }

    private static func application(_ octets: [UInt8]) throws(OutOfOctets) -> ElementApplication? {
        var reader = FieldReader(octets)
        let aid = try reader.field()
        let file = try reader.field()
        let module = try reader.field()
        let domain = try reader.field()
        let head = try reader.field()
        let privileges = UInt32(truncatingIfNeeded: try reader.number())
        let states = try reader.field()
        guard states.count == 3 else { return nil }
        var application = ElementApplication(
            aid: aid, file: file, module: module, privileges: privileges, state: states[0], domain: domain)
        application.head = head
        application.contactless = states[1]
        application.isPersonalized = states[2] == 1
        application.updates = UInt16(truncatingIfNeeded: try reader.number())
        application.nonVolatile = Int(try reader.number() & 0x7FFF_FFFF)
        application.volatile = Int(try reader.number() & 0x7FFF_FFFF)
        for octets in try reader.list() {
            var inner = FieldReader(octets)
            let kind = try inner.field()
            guard kind.count == 2 else { return nil }
            let counter = UInt32(truncatingIfNeeded: try inner.number())
            application.keySets.append(
                ElementKeySet(version: kind[0], isAES: kind[1] == 1, keys: try inner.list(), counter: counter))
        }
        for octets in try reader.list() {
            guard octets.count >= 2 else { return nil }
            application.objects.append(
                ElementObject(tag: UInt16(octets[0]) << 8 | UInt16(octets[1]), value: Array(octets.dropFirst(2))))
        }
        if let stored = try reader.list().first {
            guard let applet = ElementApplets.type(for: module).init(stored: stored) else { return nil }
            application.applet = applet
        }
        return application
    }
}

/// Writes fields of two octets of length and content. A field over 65,535 octets cannot be: commands are short.
struct FieldWriter {
    private(set) var octets: [UInt8] = []

    mutating func add(_ field: [UInt8]) {
        let field = field.prefix(65_535)
        octets.append(UInt8(truncatingIfNeeded: field.count >> 8))
        octets.append(UInt8(truncatingIfNeeded: field.count))
        octets += field
    }

    mutating func add(number: UInt64, octets count: Int) {
        add((0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) })
    }

    mutating func add(list: [[UInt8]]) {
        var inner = FieldWriter()
        for field in list { inner.add(field) }
        add(inner.octets)
    }
}

struct FieldReader {
    private var cursor: ByteCursor

    init(_ octets: [UInt8]) { cursor = ByteCursor(octets) }

    mutating func field() throws(OutOfOctets) -> [UInt8] { Array(try cursor.take(Int(try cursor.u16()))) }

    mutating func octet() throws(OutOfOctets) -> UInt8 {
        let field = try field()
        guard let octet = field.first else { throw OutOfOctets(offset: cursor.offset, wanted: 1, present: 0) }
        return octet
    }

    mutating func number() throws(OutOfOctets) -> UInt64 { try field().reduce(0) { $0 << 8 | UInt64($1) } }

    mutating func list() throws(OutOfOctets) -> [[UInt8]] {
        var inner = ByteCursor(try field())
        var fields: [[UInt8]] = []
        while !inner.isAtEnd { fields.append(Array(try inner.take(Int(try inner.u16())))) }
        return fields
    }
}
