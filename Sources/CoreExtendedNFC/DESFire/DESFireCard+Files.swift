// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials

/// A file as the Create commands make it.
public struct DESFireFileParameters: Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        case standard(size: Int)
        case backup(size: Int)
        case value(lower: Int32, upper: Int32, initial: Int32, limitedCredit: Bool)
        case linearRecord(size: Int, most: Int)
        case cyclicRecord(size: Int, most: Int)
        /// EV2 and later: the file of the transaction MAC, with its AES key.
        case transactionMAC(key: DESFireKey)
    }

    public var number: UInt8
    public var kind: Kind
    public var communication: DESFireCommunicationMode
    public var accessRights: DESFireAccessRights
    public var isoFileID: UInt16?

    public init(
        number: UInt8, kind: Kind, communication: DESFireCommunicationMode, accessRights: DESFireAccessRights,
        isoFileID: UInt16? = nil
    ) {
        self.number = number
        self.kind = kind
        self.communication = communication
        self.accessRights = accessRights
        self.isoFileID = isoFileID
    }
}

extension DESFireCard {
    // MARK: - Files

    public mutating func fileIDs() async throws -> [UInt8] {
        try await facing { try await $0.transmit(DESFireRequest(code: .getFileIDs, answers: true)) }
    }

    /// The ISO/IEC 7816-4 identifiers of the files that have one.
    public mutating func isoFileIDs() async throws -> [UInt16] {
        try await facing { card in
            let octets = try await card.transmit(DESFireRequest(code: .getISOFileIDs, answers: true))
            guard octets.count % 2 == 0 else { throw NFCError.invalidResponse(Data(octets)) }
            return stride(from: 0, to: octets.count, by: 2).map { UInt16(octets[$0]) | UInt16(octets[$0 + 1]) << 8 }
        }
    }

    public mutating func fileSettings(_ file: UInt8) async throws -> DESFireFileSettings {
        try await facing { try await $0.settings(of: file, again: true) }
    }

    mutating func settings(of file: UInt8, again: Bool = false) async throws -> DESFireFileSettings {
        if !again, let known = knownSettings[file] { return known }
        let octets = try await transmit(DESFireRequest(code: .getFileSettings, header: [file], answers: true))
        let settings = try DESFireFileSettings(bytes: octets)
        knownSettings[file] = settings
        return settings
    }

    /// Changes communication and access rights of a file.
    public mutating func changeFileSettings(
        _ file: UInt8, communication: DESFireCommunicationMode, accessRights: DESFireAccessRights
    ) async throws {
        try await facing { card in
            // The command is plain when everybody may give it.
            let settings = try await card.settings(of: file)
            let isFree = card.session == nil || settings.accessRights.change == .free
            try await card.transmit(
                DESFireRequest(
                    code: .changeFileSettings, header: [file], data: [communication.fileByte] + accessRights.octets,
                    protection: isFree ? .management : .secret))
            card.knownSettings[file] = nil
        }
    }

    public mutating func createFile(_ file: DESFireFileParameters) async throws {
        var header = [file.number]
        if let id = file.isoFileID { header += littleEndianOctets(Int(id), 2) }
        header += [file.communication.fileByte] + file.accessRights.octets
        var data: [UInt8] = []
        let code: DESFireCommandCode
        func size(_ size: Int, _ what: String) throws -> [UInt8] {
            guard (1...0xFF_FFFF).contains(size) else { throw NFCError.unsupportedOperation("\(what) of \(size)") }
            return littleEndianOctets(size, 3)
        }
        switch file.kind {
        case .standard(let count):
            code = .createStandardDataFile
            header += try size(count, "a size")
        case .backup(let count):
            code = .createBackupDataFile
            header += try size(count, "a size")
        case .value(let lower, let upper, let initial, let limitedCredit):
            code = .createValueFile
            header += [lower, upper, initial].flatMap { littleEndianOctets(Int($0), 4) } + [limitedCredit ? 1 : 0]
        case .linearRecord(let count, let most):
            code = .createLinearRecordFile
            header += try size(count, "a record size") + size(most, "a number of records")
        case .cyclicRecord(let count, let most):
            code = .createCyclicRecordFile
            header += try size(count, "a record size") + size(most, "a number of records")
        case .transactionMAC(let key):
            guard key.cipher == .aes else { throw NFCError.unsupportedOperation("the transaction MAC has an AES key") }
            code = .createTransactionMACFile
            header += [0x02]
            data = key.octets + [key.version]
        }
        let request = DESFireRequest(
            code: code, header: header, data: data, protection: data.isEmpty ? .management : .secret)
        try await facing { card in
            try await card.transmit(request)
            card.knownSettings[file.number] = nil
        }
    }

    public mutating func deleteFile(_ file: UInt8) async throws {
        try await facing { card in
            try await card.transmit(DESFireRequest(code: .deleteFile, header: [file]))
            card.knownSettings[file] = nil
        }
    }

    // MARK: - Modes

    /// How data of a file travels now: as `mode` says, else plain without a session, else by the file's settings, which are asked for
    /// once.
    mutating func mode(
        of file: UInt8, for use: DESFireUse, _ mode: DESFireCommunicationMode?
    ) async throws -> DESFireCommunicationMode {
        if let mode { return mode }
        guard let session else { return .plain }
        return try await settings(of: file).mode(for: use, key: session.keyNumber & 0x0F)
    }
}
