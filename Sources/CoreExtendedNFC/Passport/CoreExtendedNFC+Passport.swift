// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import TagTransport

extension CoreExtendedNFC {
    /// Reads a travel document over a transport that is already there; the session is neither started nor ended.
    ///
    /// The chip access procedure of ICAO 9303-11 4.2: PACE when EF.CardAccess offers it, with the application selected in its
    /// channel; Basic Access Control otherwise and when PACE fails. EF.COM and EF.SOD are read first, DG1 next, DG15 after the other data
    /// groups, DG3 and DG4 last. Only EF.SOD's list of hashes can rule a data group out.
    ///
    /// The chip proves that it is no copy by PACE with chip authentication mapping, Chip Authentication or Active Authentication; DG14 and
    /// DG15 are read for that also when they were not asked for. ``PassportModel/securityReport`` tells how each step ended.
    ///
    /// - Parameters:
    ///   - mrzKey: number, birth and expiry with their check digits; ``MRZKey`` and ``computeMRZKey(documentNumber:dateOfBirth:dateOfExpiry:)``
    ///     make one.
    ///   - dataGroups: the files to read; the order does not matter.
    ///   - performActiveAuth: whether the chip should prove that it is no copy.
    ///   - trustAnchorsDER: country signing certificates in DER.
    ///   - onProgress: gets a line after each step.
    /// - Returns: what could be read; ``PassportModel/dataGroupReadStatus`` tells what became of each file.
    /// - Throws: ``NFCError`` when nothing could be read, or when DG1 was asked for and not read: `bacFailed` when the card
    ///   refused the key, `applicationNotFound` when it is no travel document, `tagConnectionLost` when it was removed. `CancellationError`
    ///   and `EnvironmentError` come through.
    public static func readPassport(
        transport: any NFCTagTransport,
        mrzKey: String,
        dataGroups: [DataGroupId] = [.com, .dg1, .dg2, .sod],
        performActiveAuth: Bool = true,
        trustAnchorsDER: [Data] = [],
        onProgress: (@Sendable (String) -> Void)? = nil
    ) async throws -> PassportModel {
        try await readPassport(
            transport: transport, access: .mrz(mrzKey), dataGroups: dataGroups, performActiveAuth: performActiveAuth,
            trustAnchorsDER: trustAnchorsDER, terminal: nil, onProgress: onProgress)
    }

    /// Reads a travel document with any of its passwords, and with a terminal's certificates where fingers and irises shall be read.
    ///
    /// The same as ``readPassport(transport:mrzKey:dataGroups:performActiveAuth:trustAnchorsDER:onProgress:)`` for the rest.
    ///
    /// - Parameters:
    ///   - access: the MRZ for PACE and Basic Access Control; CAN, PIN or PUK for PACE alone.
    ///   - terminal: certificates and key for Terminal Authentication, which follows Chip Authentication; nil when there are none.
    /// - Throws: ``NFCError`` as there; `paceFailed` when PACE alone could have opened the chip and did not.
    public static func readPassport(
        transport: any NFCTagTransport,
        access: PassportAccess,
        dataGroups: [DataGroupId] = [.com, .dg1, .dg2, .sod],
        performActiveAuth: Bool = true,
        trustAnchorsDER: [Data] = [],
        terminal: TerminalCredentials? = nil,
        onProgress: (@Sendable (String) -> Void)? = nil
    ) async throws -> PassportModel {
        let count = access.text.utf8.count
        guard (1...256).contains(count) else {
            let name = if case .mrz = access { "MRZ key" } else { access.name }
            throw NFCError.unsupportedOperation("an \(name) of \(count) characters opens no chip")
        }
        var reading = PassportReading(
            transport: transport,
            PassportRequest(
                access: access, dataGroups: Set(dataGroups), performActiveAuth: performActiveAuth,
                trustAnchorsDER: trustAnchorsDER, terminal: terminal),
            onProgress: onProgress)
        do {
            return try await reading.run()
        } catch {
            throw NFCError.facing(error)
        }
    }
}
