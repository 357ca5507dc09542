// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import TagTransport

extension CoreExtendedNFC {
    /// Reads a travel document over a transport that is already there; the session is neither started nor ended.
    ///
    /// EF.CardAccess is looked at, the eMRTD application selected, and the chip opened by Basic Access Control (ICAO 9303-11 4.3).
    /// EF.COM and EF.SOD are read first, DG1 next, DG3 and DG4 last. Only EF.SOD's list of hashes can rule a data group out.
    ///
    /// PACE, Chip, Active and Passive Authentication are not performed by this version; ``PassportModel/securityReport`` says so.
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
        guard !mrzKey.isEmpty, mrzKey.utf8.count <= 256 else {
            throw NFCError.unsupportedOperation("an MRZ key of \(mrzKey.utf8.count) characters opens no chip")
        }
        var reading = PassportReading(
            transport: transport, access: .mrz(mrzKey), dataGroups: dataGroups, performActiveAuth: performActiveAuth,
            trustAnchorsDER: trustAnchorsDER, onProgress: onProgress)
        do {
            return try await reading.run()
        } catch {
            throw NFCError.facing(error)
        }
    }
}
