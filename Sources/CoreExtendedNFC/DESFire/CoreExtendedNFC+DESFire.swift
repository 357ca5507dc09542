// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials
public import TagTransport

/// DESFire without a secure channel. ``DESFireCard`` has the channels and everything else.
extension CoreExtendedNFC {
    /// - Throws: ``NFCError``.
    public static func getDESFireVersion(transport: any NFCTagTransport) async throws -> DESFireVersion {
        var card = DESFireCard(transport: transport)
        return try await card.version()
    }

    /// The identifiers of the card's applications, three octets each in card order.
    public static func getDESFireApplicationIDs(transport: any NFCTagTransport) async throws -> [Data] {
        var card = DESFireCard(transport: transport)
        return try await card.applicationIDs()
    }

    /// Selects an application; three zeros select the card itself.
    ///
    /// - Parameter aid: three octets in card order.
    /// - Throws: ``NFCError/applicationNotFound(aid:)``.
    public static func selectDESFireApplication(_ aid: Data, transport: any NFCTagTransport) async throws {
        var card = DESFireCard(transport: transport)
        try await card.selectApplication(aid)
    }

    /// The numbers of the files of the application that is selected.
    public static func getDESFireFileIDs(transport: any NFCTagTransport) async throws -> [UInt8] {
        var card = DESFireCard(transport: transport)
        return try await card.fileIDs()
    }

    public static func getDESFireFileSettings(
        _ fileID: UInt8, transport: any NFCTagTransport
    ) async throws -> DESFireFileSettings {
        var card = DESFireCard(transport: transport)
        return try await card.fileSettings(fileID)
    }

    /// - Parameters:
    ///   - offset, length: 24 bits; a length of 0 reads to the end.
    public static func readDESFireData(
        fileID: UInt8, offset: UInt32 = 0, length: UInt32 = 0, transport: any NFCTagTransport
    ) async throws -> Data {
        var card = DESFireCard(transport: transport)
        return try await card.read(fileID, offset: Int(offset), length: Int(length))
    }

    /// - Parameters:
    ///   - offset: 0 is the newest record.
    ///   - count: 0 reads all.
    public static func readDESFireRecords(
        fileID: UInt8, offset: UInt32 = 0, count: UInt32 = 0, transport: any NFCTagTransport
    ) async throws -> Data {
        var card = DESFireCard(transport: transport)
        return try await card.readRecords(fileID, offset: Int(offset), count: Int(count))
    }

    public static func getDESFireValue(fileID: UInt8, transport: any NFCTagTransport) async throws -> Int32 {
        var card = DESFireCard(transport: transport)
        return try await card.value(fileID)
    }

    /// Sends a native command and joins the frames of its answer.
    ///
    /// - Throws: ``NFCError/desfireError(_:)`` for any status but 00.
    public static func sendDESFireCommand(
        _ command: UInt8, data: Data = Data(), transport: any NFCTagTransport
    ) async throws -> Data {
        do {
            let answer = try await DESFireLink(transport: transport, framing: .isoWrapped).exchange(command, [UInt8](data))
            guard answer.status == 0 else { throw NFCError.desfire(answer.status) }
            return Data(answer.data)
        } catch {
            throw NFCError.facing(error)
        }
    }

    /// Authenticates by `1A` and gives the card with its channel.
    ///
    /// - Parameter key: 8, 16 or 24 octets.
    public static func authenticateDESFireISO(
        keyNo: UInt8, key: Data, transport: any NFCTagTransport
    ) async throws -> DESFireCard {
        let cipher: DESFireKey
        switch key.count {
        case 8: cipher = try DESFireKey(.des, [UInt8](key))
        case 24: cipher = try DESFireKey(.threeKeyTripleDES, [UInt8](key))
        default: cipher = try DESFireKey(.twoKeyTripleDES, [UInt8](key))
        }
        var card = DESFireCard(transport: transport)
        card.selectedApplication = nil
        try await card.authenticate(keyNumber: keyNo, key: cipher, method: .iso)
        return card
    }

    /// Authenticates by `71` and gives the card with its channel.
    ///
    /// - Parameter key: 16 octets.
    public static func authenticateDESFireEV2(
        keyNo: UInt8, key: Data, transport: any NFCTagTransport
    ) async throws -> DESFireCard {
        var card = DESFireCard(transport: transport)
        card.selectedApplication = nil
        try await card.authenticate(keyNumber: keyNo, key: try DESFireKey(.aes, [UInt8](key)), method: .ev2First)
        return card
    }
}

/// The names of 1.x.
extension CoreExtendedNFC {
    @available(*, deprecated, renamed: "getDESFireApplicationIDs(transport:)")
    public static func getApplicationIDs(transport: any NFCTagTransport) async throws -> [Data] {
        try await getDESFireApplicationIDs(transport: transport)
    }

    @available(*, deprecated, renamed: "selectDESFireApplication(_:transport:)")
    public static func selectApplication(_ aid: Data, transport: any NFCTagTransport) async throws {
        try await selectDESFireApplication(aid, transport: transport)
    }

    @available(*, deprecated, renamed: "getDESFireFileIDs(transport:)")
    public static func getFileIDs(transport: any NFCTagTransport) async throws -> [UInt8] {
        try await getDESFireFileIDs(transport: transport)
    }

    @available(*, deprecated, renamed: "getDESFireFileSettings(_:transport:)")
    public static func getFileSettings(
        _ fileID: UInt8, transport: any NFCTagTransport
    ) async throws -> DESFireFileSettings {
        try await getDESFireFileSettings(fileID, transport: transport)
    }
}
