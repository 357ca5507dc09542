// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import TagTransport

/// Makes a DESFire card of EV1 or later a Type 4 tag (NXP AN11004).
enum DESFireNDEF {
    /// Creates what is not there yet and writes the capability container last: a card that is taken away meanwhile is no tag yet, and
    /// can be formatted again.
    static func format(transport: any NFCTagTransport) async throws {
        var card = DESFireCard(transport: transport)
        let version = try await card.version()
        guard version.generation != .d40 else {
            throw NFCError.unsupportedOperation("a DESFire D40 has no ISO names, so no NDEF application")
        }
        try await card.selectApplication(Data([0, 0, 0]))
        try await unlessThere {
            try await card.createApplication(
                DESFireApplicationParameters(
                    identifier: identifier, settings: 0x0F, cipher: .aes, keyCount: 1, isoFileID: 0xE110,
                    filesHaveISOFileIDs: true, dfName: Data(Type4Tag.application)))
        }
        try await card.selectApplication(identifier)
        let size = min(2_048, max(128, try await card.freeMemory() - 64))
        let open = DESFireAccessRights(rawValue: 0xEEE0)
        try await unlessThere {
            try await card.createFile(
                DESFireFileParameters(
                    number: 2, kind: .standard(size: size), communication: .plain, accessRights: open, isoFileID: 0xE104))
        }
        try await unlessThere {
            try await card.createFile(
                DESFireFileParameters(
                    number: 1, kind: .standard(size: 15), communication: .plain, accessRights: open, isoFileID: 0xE103))
        }
        let there = try await card.fileSettings(2).fileSize ?? size
        try await card.write(2, Data([0, 0]))
        let container: [UInt8] = [
            0x00, 0x0F, 0x20, 0x00, 0x3A, 0x00, 0x34, 0x04, 0x06, 0xE1, 0x04, UInt8(truncatingIfNeeded: there >> 8),
            UInt8(truncatingIfNeeded: there), 0x00, 0x00,
        ]
        try await card.write(1, Data(container))
    }

    private static func unlessThere(_ work: () async throws -> Void) async throws {
        do {
            try await work()
        } catch NFCError.desfireError(.duplicate) {
            return
        }
    }

    /// Application 000001 as it travels.
    private static let identifier = Data([0x01, 0x00, 0x00])
}
