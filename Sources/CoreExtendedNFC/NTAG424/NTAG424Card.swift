// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials
public import TagTransport

/// An NTAG 424 DNA over a transport, with the secure channel that is open to it: EV2 with AES or with LRP.
///
/// What ``DESFireCard`` says of channels and errors holds here too.
public struct NTAG424Card: Sendable {
    /// The card below, which has the channel.
    private var card: DESFireCard

    public init(transport: any NFCTagTransport) {
        card = DESFireCard(transport: transport, chaining: .iso)
        card.selectedApplication = nil
    }

    /// Who is authenticated; nil when nobody is.
    public var session: DESFireCard.Session? { card.session }

    /// Selects the application of the NDEF message; whoever was authenticated no longer is.
    public mutating func selectApplication() async throws {
        try await card.isoSelect(.name(Data(Type4Tag.application)))
    }

    /// Authenticates with application key 0...4.
    ///
    /// - Parameters:
    ///   - key: AES.
    ///   - method: an EV2 or LRP form. A card that was switched to LRP takes LRP alone.
    public mutating func authenticate(
        keyNumber: UInt8, key: DESFireKey, method: DESFireAuthentication = .ev2First
    ) async throws {
        guard method.isEV2 else { throw NFCError.unsupportedOperation("NTAG 424 DNA has no \(method.rawValue)") }
        try await card.authenticate(keyNumber: keyNumber, key: key, method: method)
    }

    public mutating func version() async throws -> DESFireVersion { try await card.version() }

    /// The UID, which a card with a random one tells only so. Needs an authentication.
    public mutating func cardUID() async throws -> Data { try await card.cardUID() }

    // MARK: - Files

    /// - Parameter file: 1 capability container, 2 NDEF, 3 proprietary.
    public mutating func fileSettings(_ file: UInt8) async throws -> NTAG424FileSettings {
        try await card.facing { card in
            let octets = try await card.transmit(DESFireRequest(code: .getFileSettings, header: [file], answers: true))
            card.knownSettings[file] = try DESFireFileSettings(bytes: octets)
            return try NTAG424FileSettings(bytes: octets)
        }
    }

    /// Changes communication, rights and dynamic messaging of a file.
    public mutating func changeFileSettings(
        _ file: UInt8, communication: DESFireCommunicationMode, accessRights: DESFireAccessRights,
        dynamicMessaging: NTAG424DynamicMessaging? = nil
    ) async throws {
        let options = communication.fileByte | (dynamicMessaging == nil ? 0 : 0x40)
        let data = [options] + accessRights.octets + (dynamicMessaging?.octets ?? [])
        try await card.facing { card in
            let settings = try await card.settings(of: file)
            let isFree = card.session == nil || settings.accessRights.change == .free
            try await card.transmit(
                DESFireRequest(
                    code: .changeFileSettings, header: [file], data: data, protection: isFree ? .management : .secret))
            card.knownSettings[file] = nil
        }
    }

    /// Reads a file in pieces that the chip's frames hold.
    ///
    /// - Parameters:
    ///   - length: 0 reads to the end.
    ///   - mode: nil asks the file's settings.
    public mutating func read(
        _ file: UInt8, offset: Int = 0, length: Int = 0, mode: DESFireCommunicationMode? = nil
    ) async throws -> Data {
        var rest = length
        if rest == 0 {
            let size = try await fileSettings(file).fileSize
            guard offset < size else { throw NFCError.desfireError(.boundaryError) }
            rest = size - offset
        }
        guard offset >= 0, rest > 0 else { throw NFCError.unsupportedOperation("offset \(offset), length \(length)") }
        var data = Data()
        while data.count < rest {
            let piece = min(NTAG424Commands.protectedChunkSize, rest - data.count)
            data += try await card.read(file, offset: offset + data.count, length: piece, mode: mode)
        }
        return data
    }

    /// Writes into a file; each piece is written whole or not at all.
    public mutating func write(
        _ file: UInt8, offset: Int = 0, _ data: Data, mode: DESFireCommunicationMode? = nil
    ) async throws {
        let octets = [UInt8](data)
        for start in stride(from: 0, to: octets.count, by: NTAG424Commands.protectedChunkSize) {
            let piece = octets[start..<min(octets.count, start + NTAG424Commands.protectedChunkSize)]
            try await card.write(file, offset: offset + start, Data(piece), mode: mode)
        }
    }

    /// Writes without a channel.
    ///
    /// - Parameter chunkSize: 1...248.
    mutating func writePlain(_ file: UInt8, offset: Int, _ data: Data, chunkSize: Int) async throws {
        guard (1...NTAG424Commands.longestWriteChunk).contains(chunkSize) else {
            throw NFCError.unsupportedOperation("pieces of \(chunkSize) bytes; 1 to 248 can be")
        }
        let octets = [UInt8](data)
        guard offset >= 0, offset <= 0xFF_FFFF - octets.count else {
            throw NFCError.unsupportedOperation("offset \(offset) and \(octets.count) bytes have 24 bits at most")
        }
        for start in stride(from: 0, to: octets.count, by: chunkSize) {
            let piece = octets[start..<min(octets.count, start + chunkSize)]
            try await card.write(file, offset: offset + start, Data(piece), mode: .plain)
        }
    }

    /// SDMReadCtr of a file.
    public mutating func readCounter(_ file: UInt8) async throws -> Int {
        try await card.facing { card in
            let protection: DESFireRequest.Protection = card.session == nil ? .none : .secret
            let octets = try await card.transmit(
                DESFireRequest(code: .getFileCounters, header: [file], protection: protection, answers: true))
            guard octets.count == 5 else { throw NFCError.invalidResponse(Data(octets)) }
            return littleEndian(octets[0..<3])
        }
    }

    // MARK: - Keys and configuration

    public mutating func keyVersion(_ keyNumber: UInt8) async throws -> UInt8 { try await card.keyVersion(keyNumber) }

    /// Changes application key 0...4; needs an authentication with key 0.
    ///
    /// - Parameter old: needed for every key but the one in use.
    public mutating func changeKey(_ keyNumber: UInt8, to new: DESFireKey, from old: DESFireKey? = nil) async throws {
        guard new.cipher == .aes, keyNumber < 5 else {
            throw NFCError.unsupportedOperation("NTAG 424 DNA has AES keys 0 to 4")
        }
        try await card.changeKey(keyNumber, to: new, from: old)
    }

    public mutating func setConfiguration(option: UInt8, _ data: Data) async throws {
        try await card.setConfiguration(option: option, data)
    }

    /// Switches the card to LRP. It cannot be switched back (NT4H2421Gx 10.5.1).
    public mutating func switchToLRP(allowIrreversible: Bool = false) async throws {
        guard allowIrreversible else { throw NFCError.unsupportedOperation("a switch to LRP cannot be undone") }
        try await setConfiguration(option: 0x05, Data([0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0]))
    }

    // MARK: - Originality

    /// The originality signature, 56 octets, as it is.
    public mutating func signature() async throws -> Data { try await card.signature() }

    /// Whether NXP signed the UID of this chip (AN12196 7.2).
    public mutating func isOriginal() async throws -> Bool {
        let uid = card.session == nil ? try await version().uid : try await cardUID()
        return try NTAG424Originality.verify(signature: try await signature(), uid: uid)
    }
}

/// NXP's signature over the UID of an NTAG 424 DNA.
public enum NTAG424Originality {
    /// - Returns: false when the chip was not made by NXP, or its UID is another.
    /// - Throws: ``NFCError/cryptoError(_:)`` for a signature that has not 56 octets.
    public static func verify(signature: Data, uid: Data) throws -> Bool {
        do {
            return try DESFireOriginality.verify(
                signature: [UInt8](signature), uid: [UInt8](uid), publicKey: publicKey)
        } catch {
            throw NFCError.cryptoError(error.detail)
        }
    }

    /// NXP AN12196 7.2, an uncompressed point of secp224r1.
    private static let publicKey: [UInt8] = [
        0x04, 0x8A, 0x9B, 0x38, 0x0A, 0xF2, 0xEE, 0x1B, 0x98, 0xDC, 0x41, 0x7F, 0xEC, 0xC2, 0x63, 0xF8, 0x44, 0x9C, 0x76, 0x25,
        0xCE,
        0xCE, 0x82, 0xD9, 0xB9, 0x16, 0xC9, 0x92, 0xDA, 0x20, 0x9D, 0x68, 0x42, 0x2B, 0x81, 0xEC, 0x20, 0xB6, 0x5A, 0x66, 0xB5,
        0x10,
        0x2A, 0x61, 0x59, 0x6A, 0xF3, 0x37, 0x92, 0x00, 0x59, 0x93, 0x16, 0xA0, 0x0A, 0x14, 0x10,
    ]
}

extension CoreExtendedNFC {
    /// The settings of a file of an NTAG 424 DNA, without a channel.
    ///
    /// The application of the NDEF message is selected first.
    ///
    /// - Parameter fileID: 1 capability container, 2 NDEF, 3 proprietary.
    public static func getNTAG424FileSettings(
        fileID: UInt8, transport: any NFCTagTransport
    ) async throws -> NTAG424FileSettings {
        var card = NTAG424Card(transport: transport)
        try await card.selectApplication()
        return try await card.fileSettings(fileID)
    }

    /// Writes into a file that everybody may write, without a channel.
    ///
    /// The application of the NDEF message is selected first. Each piece is written whole or not at all; a card that is taken away
    /// between two of them holds what was written before.
    ///
    /// - Parameters:
    ///   - offset: 24 bits.
    ///   - chunkSize: 1...248.
    public static func writeNTAG424DataPlain(
        fileID: UInt8, offset: UInt32 = 0, data: Data, chunkSize: Int = NTAG424Commands.defaultWriteChunkSize,
        transport: any NFCTagTransport
    ) async throws {
        var card = NTAG424Card(transport: transport)
        try await card.selectApplication()
        try await card.writePlain(fileID, offset: Int(offset), data, chunkSize: chunkSize)
    }
}
