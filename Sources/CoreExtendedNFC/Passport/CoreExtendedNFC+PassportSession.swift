// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension CoreExtendedNFC {
    /// Waits for a travel document, reads it, and ends the session before it returns or throws.
    ///
    /// The lines of `onProgress` are also shown to the user by the manager. A failure is told to the user, unless somebody only
    /// wanted to stop.
    ///
    /// - Parameters:
    ///   - message: what the user sees while the document is waited for.
    ///   - manager: may be a subclass; one scan at a time.
    /// - Throws: as ``readPassport(transport:mrzKey:dataGroups:performActiveAuth:trustAnchorsDER:onProgress:)`` and
    ///   ``NFCSessionManager/scan(for:message:)``; ``NFCError/userCanceled`` for whatever failed because the user ended the session.
    public static func readPassport(
        mrzKey: String,
        dataGroups: [DataGroupId] = [.com, .dg1, .dg2, .sod],
        performActiveAuth: Bool = true,
        trustAnchorsDER: [Data] = [],
        message: String? = nil,
        manager: NFCSessionManager = NFCSessionManager(),
        onProgress: (@Sendable (String) -> Void)? = nil
    ) async throws -> PassportModel {
        let (_, transport) = try await manager.scan(for: [.iso14443], message: message)
        do {
            let model = try await readPassport(
                transport: transport, mrzKey: mrzKey, dataGroups: dataGroups, performActiveAuth: performActiveAuth,
                trustAnchorsDER: trustAnchorsDER
            ) { line in
                manager.setAlertMessage(line)
                onProgress?(line)
            }
            manager.invalidate()
            return model
        } catch {
            let reason: any Error = manager.wasCanceledByUser ? NFCError.userCanceled : error
            if reason.isNFCCancellation { manager.invalidate() } else { manager.invalidate(errorMessage: "\(reason)") }
            throw reason
        }
    }
}
