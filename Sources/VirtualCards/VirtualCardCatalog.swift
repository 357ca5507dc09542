// SPDX-License-Identifier: MIT

/// A kind of virtual card: what a help text says of it, and how one is made.
public struct VirtualCardKind: Sendable {
    public let name: String
    /// One line.
    public let summary: String
    public let options: [VirtualCardOption]
    let build: @Sendable (VirtualCardOptions) throws(VirtualCardError) -> VirtualCard

    /// Every kind takes its options from a file too.
    init(
        name: String, summary: String, options: [VirtualCardOption],
        build: @escaping @Sendable (VirtualCardOptions) throws(VirtualCardError) -> VirtualCard
    ) {
        self.name = name
        self.summary = summary
        self.options = options + [VirtualCardOption("options", "FILE", "more options, an option a line, without dashes")]
        self.build = build
    }

    func option(named name: String) -> VirtualCardOption? { options.first { $0.name == name } }
}

/// Every kind of virtual card there is.
public enum VirtualCardCatalog {
    /// Every summary fits a help text of 80 columns.
    public static let kinds: [VirtualCardKind] = [passport, filesystem, desfire, ntag424, secureElement]

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
        let kind = try self.kind(named: kind)
        do throws(VirtualCardError) { return try kind.build(options) } catch { throw options.placed(error) }
    }

    /// A card without power.
    ///
    /// - Throws: ``VirtualCardError``.
    public static func make(_ specification: VirtualCardSpecification) throws(VirtualCardError) -> VirtualCard {
        try make(kind: specification.kind, options: specification.options)
    }

    static let commonOptions = [
        VirtualCardOption("seed", "N", "the seed of the card's random numbers (default 0)"),
        VirtualCardOption("fault", "LIST", "what goes wrong at which command: remove@12,6C@3"),
    ]

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
