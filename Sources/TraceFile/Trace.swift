// SPDX-License-Identifier: MIT

/// A trace as a whole, for those who need all of it at once: replay, and tests. For long files use ``TraceReader``.
public struct Trace: Sendable, Equatable {
    public var header: TraceHeader
    public var interfaces: [TraceInterface]
    public var rows: [TraceRow]
    /// The secrets that stand inside the file; those beside it are found by ``SecretStore``.
    public var secrets: [SecretRecord]
    /// Where the file stops being readable, when that is before its end.
    public var damage: TraceDamage?

    public init(
        header: TraceHeader, interfaces: [TraceInterface] = [], rows: [TraceRow] = [], secrets: [SecretRecord] = [],
        damage: TraceDamage? = nil
    ) {
        self.header = header
        self.interfaces = interfaces
        self.rows = rows
        self.secrets = secrets
        self.damage = damage
    }

    /// Reads everything that can be read of a file.
    ///
    /// A trace of an older format comes as one of the current: see ``TraceUpgrade``.
    /// - Throws: ``TraceFileError`` as ``TraceReader/init(path:)``; damage inside the file is in ``damage`` instead.
    public static func load(path: String) throws(TraceFileError) -> Trace { Trace(reading: try TraceReader(path: path)) }

    public init(octets: [UInt8]) throws(TraceFileError) { self.init(reading: try TraceReader(octets: octets)) }

    private init(reading reader: consuming TraceReader) {
        var reader = reader
        rows = []
        secrets = []
        while let item = reader.next() {
            switch item {
            case .row(let row): rows.append(row)
            case .secrets(let records): secrets += records
            case .header, .interface: break
            }
        }
        header = reader.header ?? TraceHeader(format: nil, session: nil)
        interfaces = reader.interfaces
        damage = reader.damage
        TraceUpgrade.standard.apply(to: &self)
    }

    /// The kind of the interface that a row is of.
    public func kind(of row: TraceRow) -> InterfaceKind {
        interfaces.indices.contains(row.interface) ? interfaces[row.interface].kind : .other("")
    }

    /// Writes the whole trace: header, interfaces, secrets, rows.
    public func write(to path: String, replacing: Bool = false) throws(TraceFileError) {
        var writer = try TraceWriter(creating: path, header: header, interfaces: interfaces, replacing: replacing)
        if !secrets.isEmpty { try writer.write(secrets: secrets) }
        for row in rows { try writer.write(row) }
        try writer.close()
    }
}
