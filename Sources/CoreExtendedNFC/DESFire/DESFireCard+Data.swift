// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension DESFireCard {
    // MARK: - Data

    /// Reads a data file, or the transaction MAC's.
    ///
    /// - Parameters:
    ///   - length: 0 reads to the end.
    ///   - mode: how the data travels; nil asks the file's settings. In the D40 channel settings themselves come without a MAC, so
    ///     that a caller who knows the mode should give it.
    public mutating func read(
        _ file: UInt8, offset: Int = 0, length: Int = 0, mode: DESFireCommunicationMode? = nil
    ) async throws -> Data {
        let range = try Self.range(offset, length)
        return try await facing { card in
            let mode = try await card.mode(of: file, for: .read, mode)
            return Data(
                try await card.transmit(
                    DESFireRequest(
                        code: card.chaining == .iso ? .readDataISO : .readData, header: [file] + range,
                        protection: .file(mode), answers: true, answerLength: length == 0 ? nil : length)))
        }
    }

    /// Writes into a data file. A backup file keeps it back until ``commitTransaction()``.
    public mutating func write(
        _ file: UInt8, offset: Int = 0, _ data: Data, mode: DESFireCommunicationMode? = nil
    ) async throws {
        try await write(.writeData, .writeDataISO, file, Self.range(offset, data.count), data, mode)
    }

    // MARK: - Values

    /// What a value file holds.
    public mutating func value(_ file: UInt8, mode: DESFireCommunicationMode? = nil) async throws -> Int32 {
        try await facing { card in
            let mode = try await card.mode(of: file, for: .debit, mode)
            let octets = try await card.transmit(
                DESFireRequest(code: .getValue, header: [file], protection: .file(mode), answers: true, answerLength: 4))
            return Int32(truncatingIfNeeded: littleEndian(octets))
        }
    }

    /// Adds to a value; holds from ``commitTransaction()`` on.
    public mutating func credit(_ file: UInt8, _ amount: Int32, mode: DESFireCommunicationMode? = nil) async throws {
        try await change(.credit, file, amount, .credit, mode)
    }

    /// Takes from a value; holds from ``commitTransaction()`` on.
    public mutating func debit(_ file: UInt8, _ amount: Int32, mode: DESFireCommunicationMode? = nil) async throws {
        try await change(.debit, file, amount, .debit, mode)
    }

    /// Puts back at most what the last transaction took.
    public mutating func limitedCredit(_ file: UInt8, _ amount: Int32, mode: DESFireCommunicationMode? = nil) async throws {
        try await change(.limitedCredit, file, amount, .write, mode)
    }

    private mutating func change(
        _ code: DESFireCommandCode, _ file: UInt8, _ amount: Int32, _ use: DESFireUse, _ mode: DESFireCommunicationMode?
    ) async throws {
        guard amount >= 0 else { throw NFCError.unsupportedOperation("an amount of \(amount)") }
        try await facing { card in
            let mode = try await card.mode(of: file, for: use, mode)
            try await card.transmit(
                DESFireRequest(
                    code: code, header: [file], data: littleEndianOctets(Int(amount), 4), protection: .file(mode)))
        }
    }

    // MARK: - Records

    /// Reads records, the oldest first.
    ///
    /// - Parameters:
    ///   - offset: 0 is the newest record.
    ///   - count: 0 reads all.
    public mutating func readRecords(
        _ file: UInt8, offset: Int = 0, count: Int = 0, mode: DESFireCommunicationMode? = nil
    ) async throws -> Data {
        let range = try Self.range(offset, count)
        return try await facing { card in
            let mode = try await card.mode(of: file, for: .read, mode)
            let size = card.knownSettings[file]?.recordSize
            let length = count > 0 ? size.flatMap { $0.multipliedReportingOverflow(by: count).overflow ? nil : $0 * count } : nil
            return Data(
                try await card.transmit(
                    DESFireRequest(
                        code: card.chaining == .iso ? .readRecordsISO : .readRecords, header: [file] + range,
                        protection: .file(mode), answers: true, answerLength: length)))
        }
    }

    /// Writes into the record that the transaction adds; holds from ``commitTransaction()`` on.
    public mutating func writeRecord(
        _ file: UInt8, offset: Int = 0, _ data: Data, mode: DESFireCommunicationMode? = nil
    ) async throws {
        try await write(.writeRecord, .writeRecordISO, file, Self.range(offset, data.count), data, mode)
    }

    /// Writes into a record that is there (EV2 and later).
    ///
    /// - Parameter record: 0 is the newest.
    public mutating func updateRecord(
        _ file: UInt8, record: Int, offset: Int = 0, _ data: Data, mode: DESFireCommunicationMode? = nil
    ) async throws {
        let range = try Self.range(record, offset) + littleEndianOctets(data.count, 3)
        try await write(.updateRecord, .updateRecordISO, file, range, data, mode)
    }

    /// Takes all records out; holds from ``commitTransaction()`` on.
    public mutating func clearRecords(_ file: UInt8) async throws {
        try await facing { try await $0.transmit(DESFireRequest(code: .clearRecordFile, header: [file])) }
    }

    // MARK: - Transactions

    /// Makes everything that was written since the last commit hold, all of it or nothing.
    public mutating func commitTransaction() async throws {
        try await facing { try await $0.transmit(DESFireRequest(code: .commitTransaction)) }
    }

    /// The same, and what the card's transaction MAC says of it: the counter and the MAC, eight octets (EV2 and later).
    public mutating func commitTransactionWithMAC() async throws -> DESFireTransactionMAC {
        try await facing { card in
            let octets = try await card.transmit(
                DESFireRequest(code: .commitTransaction, header: [0x01], answers: true, answerLength: 12))
            return DESFireTransactionMAC(counter: UInt32(littleEndian(octets[0..<4])), mac: Data(octets[4...]))
        }
    }

    /// Forgets everything that was written since the last commit.
    public mutating func abortTransaction() async throws {
        try await facing { try await $0.transmit(DESFireRequest(code: .abortTransaction)) }
    }

    /// Tells the card who reads it, for its transaction MAC (EV2 and later).
    ///
    /// - Parameter reader: 16 octets.
    /// - Returns: the identifier of the reader before, enciphered by the card; 16 octets.
    public mutating func commitReaderID(_ reader: Data) async throws -> Data {
        guard reader.count == 16 else { throw NFCError.unsupportedOperation("a reader identifier has 16 bytes") }
        return try await facing { card in
            Data(
                try await card.transmit(
                    DESFireRequest(code: .commitReaderID, data: [UInt8](reader), answers: true, answerLength: 16)))
        }
    }

    /// - Parameters:
    ///   - code: the command, and `isoCode` the same in ISO chaining.
    ///   - range: where the data goes, as it travels.
    private mutating func write(
        _ code: DESFireCommandCode, _ isoCode: DESFireCommandCode, _ file: UInt8, _ range: [UInt8], _ data: Data,
        _ mode: DESFireCommunicationMode?
    ) async throws {
        guard !data.isEmpty else { return }
        try await facing { card in
            let mode = try await card.mode(of: file, for: .write, mode)
            try await card.transmit(
                DESFireRequest(
                    code: card.chaining == .iso ? isoCode : code, header: [file] + range, data: [UInt8](data),
                    protection: .file(mode)))
        }
    }

    /// Offset and length as they travel.
    private static func range(_ offset: Int, _ length: Int) throws -> [UInt8] {
        guard (0...0xFF_FFFF).contains(offset), (0...0xFF_FFFF).contains(length) else {
            throw NFCError.unsupportedOperation("offset \(offset) and length \(length) have 24 bits at most")
        }
        return littleEndianOctets(offset, 3) + littleEndianOctets(length, 3)
    }
}
