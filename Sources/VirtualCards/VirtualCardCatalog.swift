// SPDX-License-Identifier: MIT

/// A kind of virtual card: what a help text says of it, and how one is made.
public struct VirtualCardKind: Sendable {
    public let name: String
    /// One line.
    public let summary: String
    public let options: [VirtualCardOption]
    let build: @Sendable (VirtualCardOptions) throws(VirtualCardError) -> VirtualCard

    func option(named name: String) -> VirtualCardOption? { options.first { $0.name == name } }
}

/// Every kind of virtual card there is.
public enum VirtualCardCatalog {
    /// Every summary fits a help text of 80 columns.
    public static let kinds: [VirtualCardKind] = [passport, filesystem, desfire, ntag424]

    /// - Throws: ``VirtualCardError`` with the code `unknownKind`, the nearest kind in its text.
    public static func kind(named name: String) throws(VirtualCardError) -> VirtualCardKind {
        if let kind = kinds.first(where: { $0.name == name }) { return kind }
        let names = kinds.map(\.name)
        let hint =
            VirtualCardError.nearest(to: name, in: names).map { "did you mean \($0)" }
            ?? "known are \(names.joined(separator: ", "))"
        throw VirtualCardError(.unknownKind, "no virtual card '\(name)'; \(hint)")
    }

    /// A card without power.
    ///
    /// - Throws: ``VirtualCardError``.
    public static func make(kind: String, options: VirtualCardOptions = VirtualCardOptions()) throws(VirtualCardError)
        -> VirtualCard
    {
        try self.kind(named: kind).build(options)
    }

    /// A card without power.
    ///
    /// - Throws: ``VirtualCardError``.
    public static func make(_ specification: VirtualCardSpecification) throws(VirtualCardError) -> VirtualCard {
        try make(kind: specification.kind, options: specification.options)
    }

    private static let commonOptions = [
        VirtualCardOption("seed", "N", "the seed of the card's random numbers (default 0)"),
        VirtualCardOption("fault", "LIST", "what goes wrong at which command: remove@12,6C@3"),
    ]

    private static let passport = VirtualCardKind(
        name: "passport",
        summary: "a travel document with BAC and the ICAO specimen's data",
        options: commonOptions + [
            VirtualCardOption(
                "mrz", "LINES", "the machine readable zone, commas between its lines"),
            VirtualCardOption("dg", "LIST", "the data groups, of 1 and 2 (default 1,2)"),
            VirtualCardOption("photo", "BYTES", "the least length of the image in DG2, up to 60000"),
            VirtualCardOption("chunk", "BYTES", "the most bytes of a file in one answer"),
            VirtualCardOption("strict", nil, "a read past a file's end ends the session (6B00)"),
            VirtualCardOption("issuer", "N", "the seed of the authority that signs (default 0)"),
        ]
    ) { options throws(VirtualCardError) in
        let zone = try options.list("mrz").map { lines throws(VirtualCardError) in try MachineReadableZone(lines: lines) }
        let groups = try dataGroups(options)
        let photo = try options.number("photo", in: 0...60_000) ?? 0
        let chunk = try options.number("chunk", in: 1...UInt64(BinaryAccess.longestAnswer))
        let issuer = try options.number("issuer") ?? 0
        let machine: PassportCard
        do {
            machine = PassportCard(
                files: try .specimen(
                    zone ?? .specimen, groups: groups, photoLength: Int(photo), issuer: try SpecimenIssuer.seeded(issuer)),
                access: try BasicAccessControl(zone ?? .specimen), random: CardRandom(seed: try options.seed(), use: "passport"),
                longestRead: chunk.map { Int($0) } ?? BinaryAccess.longestAnswer, isStrict: options.isOn("strict"))
        } catch let error as VirtualCardError {
            throw error
        } catch {
            throw VirtualCardError(.cryptography, "the specimen's files cannot be signed: \(error)")
        }
        // Single size, and 08: a number drawn at random in a real chip (ISO/IEC 14443-3 6.5.4).
        return VirtualCard(
            kind: "passport", machine: machine, identifier: [0x08, 0x54, 0x44, 0x01], faults: try options.faults())
    }

    private static func dataGroups(_ options: VirtualCardOptions) throws(VirtualCardError) -> [Int] {
        guard let names = options.list("dg") else { return [1, 2] }
        guard !names.isEmpty else { throw VirtualCardError(.badValue, "--dg names no data group", option: "dg") }
        var groups: [Int] = []
        for name in names {
            guard let group = Int(name), [1, 2].contains(group), !groups.contains(group) else {
                throw VirtualCardError(.badValue, "--dg takes 1 and 2, each once, not '\(name)'", option: "dg")
            }
            groups.append(group)
        }
        return groups
    }

    private static let filesystem = VirtualCardKind(
        name: "filesystem",
        summary: "a plain ISO 7816-4 card with files, records and a PIN",
        options: commonOptions + [
            VirtualCardOption("pin", "DIGITS", "the PIN, 4 to 8 characters (default 1234)"),
            VirtualCardOption("puk", "DIGITS", "what unblocks the PIN (default 12345678)"),
        ]
    ) { options throws(VirtualCardError) in
        let machine = FileSystemCard(
            seed: try options.seed(), pin: try password("pin", in: options) ?? "1234",
            unblockingCode: try password("puk", in: options) ?? "12345678"
        )
        return VirtualCard(kind: "filesystem", machine: machine, faults: try options.faults())
    }

    private static func password(_ name: String, in options: VirtualCardOptions) throws(VirtualCardError) -> String? {
        guard let text = options[name] else { return nil }
        guard (4...8).contains(text.utf8.count) else {
            throw VirtualCardError(.badValue, "--\(name) has 4 to 8 characters, not \(text.utf8.count)", option: name)
        }
        return text
    }
}
