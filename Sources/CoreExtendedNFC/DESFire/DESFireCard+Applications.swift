// SPDX-License-Identifier: MIT

public import CardCrypto
public import FoundationEssentials
import Octets

/// An application as CreateApplication makes it.
public struct DESFireApplicationParameters: Sendable, Equatable {
    /// Three octets in card order.
    public var identifier: Data
    /// ``DESFireKeySettings``' first octet.
    public var settings: UInt8
    public var cipher: DESFireCipher
    /// 1...14.
    public var keyCount: UInt8
    /// The ISO/IEC 7816-4 file identifier of the application, and whether its files have one.
    public var isoFileID: UInt16?
    public var filesHaveISOFileIDs: Bool
    /// The name for ISO SELECT, up to 16 octets.
    public var dfName: Data

    public init(
        identifier: Data, settings: UInt8 = 0x0F, cipher: DESFireCipher = .aes, keyCount: UInt8 = 1, isoFileID: UInt16? = nil,
        filesHaveISOFileIDs: Bool = false, dfName: Data = Data()
    ) {
        self.identifier = identifier
        self.settings = settings
        self.cipher = cipher
        self.keyCount = keyCount
        self.isoFileID = isoFileID
        self.filesHaveISOFileIDs = filesHaveISOFileIDs
        self.dfName = dfName
    }
}

/// What GetDFNames tells of an application.
public struct DESFireDFName: Sendable, Codable, Equatable {
    public var identifier: Data
    public var isoFileID: UInt16
    public var name: Data
}

/// What GetKeySettings tells: who may do what, and how many keys there are.
public struct DESFireKeySettings: Sendable, Codable, Equatable {
    /// Bit 0 the master key may be changed, 1 free listing, 2 free creation and deletion, 3 the settings may be changed,
    /// bits 4-7 the key that changes keys (`E` each its own, `F` none).
    public var settings: UInt8
    public var keyCount: UInt8
    public var cipher: DESFireCipher

    init(_ octets: [UInt8]) throws {
        guard octets.count >= 2 else { throw NFCError.invalidResponse(Data(octets)) }
        settings = octets[0]
        keyCount = octets[1] & 0x0F
        switch octets[1] & 0xC0 {
        case 0x80: cipher = .aes
        case 0x40: cipher = .threeKeyTripleDES
        default: cipher = .twoKeyTripleDES
        }
    }
}

extension DESFireCard {
    // MARK: - The card

    public mutating func version() async throws -> DESFireVersion {
        try await facing { try DESFireVersion(bytes: try await $0.transmit(DESFireRequest(code: .getVersion, answers: true))) }
    }

    /// Octets of free memory.
    public mutating func freeMemory() async throws -> Int {
        try await facing { card in
            let octets = try await card.transmit(DESFireRequest(code: .freeMemory, answers: true))
            guard octets.count == 3 else { throw NFCError.invalidResponse(Data(octets)) }
            return littleEndian(octets)
        }
    }

    /// The UID of a card that shows a random one. Needs an authentication.
    public mutating func cardUID() async throws -> Data {
        try await facing { card in
            // Newer chips put `00` and the length before a UID that is not of seven octets.
            let octets = try await card.transmit(DESFireRequest(code: .getCardUID, protection: .secret, answers: true))
            if octets.count > 7, octets[0] == 0, Int(octets[1]) == octets.count - 2 { return Data(octets.dropFirst(2)) }
            guard octets.count == 7 else { throw NFCError.invalidResponse(Data(octets)) }
            return Data(octets)
        }
    }

    /// Deletes every application. The master key and its settings stay.
    public mutating func format() async throws {
        try await facing { card in
            try await card.transmit(DESFireRequest(code: .formatPICC))
            card.knownSettings = [:]
        }
    }

    /// Changes a configuration of the card or application.
    ///
    /// - Parameters:
    ///   - option: which; 00 random UID and formatting, 01 default key, 02 ATS, and more from EV2 on.
    public mutating func setConfiguration(option: UInt8, _ data: Data) async throws {
        try await facing {
            try await $0.transmit(
                DESFireRequest(code: .setConfiguration, header: [option], data: [UInt8](data), protection: .secret))
        }
    }

    /// NXP's originality signature, 56 octets: EV2 and later.
    public mutating func signature() async throws -> Data {
        try await facing { card in
            let protection: DESFireRequest.Protection = card.session == nil ? .none : .secret
            let octets = try await card.transmit(
                DESFireRequest(code: .readSignature, header: [0], protection: protection, answers: true))
            guard octets.count == 56 else { throw NFCError.invalidResponse(Data(octets)) }
            return Data(octets)
        }
    }

    // MARK: - Applications

    /// The identifiers of the applications, three octets each in card order.
    public mutating func applicationIDs() async throws -> [Data] {
        try await facing { card in
            let octets = try await card.transmit(DESFireRequest(code: .getApplicationIDs, answers: true))
            guard octets.count % 3 == 0 else { throw NFCError.invalidResponse(Data(octets)) }
            return stride(from: 0, to: octets.count, by: 3).map { Data(octets[$0..<$0 + 3]) }
        }
    }

    /// The applications that have an ISO/IEC 7816-4 name.
    public mutating func dfNames() async throws -> [DESFireDFName] {
        // Each name comes in a frame of its own, and only the frames tell where one ends.
        try await facing { card in
            guard case .open = card.state else {
                throw NFCError.unsupportedOperation("GetDFNames is sent without an authentication only")
            }
            var names: [DESFireDFName] = []
            var answer = try await card.link.exchange(DESFireCommandCode.getDFNames.rawValue, [], gathers: false)
            while true {
                guard answer.status == 0 || answer.status == DESFireLink.more else { throw NFCError.desfire(answer.status) }
                let octets = answer.data
                if !octets.isEmpty {
                    guard (5...21).contains(octets.count) else { throw NFCError.invalidResponse(Data(octets)) }
                    names.append(
                        DESFireDFName(
                            identifier: Data(octets[0..<3]), isoFileID: UInt16(octets[3]) | UInt16(octets[4]) << 8,
                            name: Data(octets[5...])))
                }
                if answer.status == 0 { return names }
                guard names.count < 256 else { throw NFCError.invalidResponse(Data(octets)) }
                answer = try await card.link.exchange(DESFireLink.more, [], gathers: false)
            }
        }
    }

    /// Selects an application; zeros select the card itself. Whoever was authenticated no longer is.
    ///
    /// - Parameter identifier: three octets in card order.
    /// - Throws: ``NFCError/applicationNotFound(aid:)``.
    public mutating func selectApplication(_ identifier: Data) async throws {
        guard identifier.count == 3 else {
            throw NFCError.unsupportedOperation("an application identifier has 3 bytes, not \(identifier.count)")
        }
        try await facing { card in
            card.state = .open
            card.knownSettings = [:]
            do {
                try await card.transmit(
                    DESFireRequest(code: .selectApplication, header: [UInt8](identifier), protection: .none))
            } catch NFCError.desfireError(.applicationNotFound) {
                throw NFCError.applicationNotFound(aid: Data(identifier))
            }
            card.selectedApplication = Data(identifier)
        }
    }

    public mutating func createApplication(_ parameters: DESFireApplicationParameters) async throws {
        guard parameters.identifier.count == 3, (1...14).contains(parameters.keyCount), parameters.dfName.count <= 16 else {
            throw NFCError.unsupportedOperation(
                "an application has an identifier of 3 bytes, 1 to 14 keys, a name up to 16 bytes")
        }
        let type = (try? DESFireKey(parameters.cipher, [UInt8](repeating: 0, count: parameters.cipher.keyLength)))?.typeBits ?? 0
        var header = [UInt8](parameters.identifier) + [parameters.settings]
        header.append(parameters.keyCount | type | (parameters.filesHaveISOFileIDs ? 0x20 : 0))
        if let id = parameters.isoFileID {
            header += littleEndianOctets(Int(id), 2) + parameters.dfName
        }
        try await facing { try await $0.transmit(DESFireRequest(code: .createApplication, header: header)) }
    }

    /// Deletes an application with its keys and files. When it is the one selected, the card itself is selected afterwards.
    public mutating func deleteApplication(_ identifier: Data) async throws {
        guard identifier.count == 3 else {
            throw NFCError.unsupportedOperation("an application identifier has 3 bytes, not \(identifier.count)")
        }
        try await facing { card in
            // Deleted from inside, the application takes its session with it.
            let isInside = card.selectedApplication == Data(identifier)
            try await card.transmit(
                DESFireRequest(code: .deleteApplication, header: [UInt8](identifier), endsSession: isInside))
            if isInside {
                card.state = .open
                card.selectedApplication = Data([0, 0, 0])
            }
        }
    }
}

/// `count` octets of a number, least significant first.
func littleEndianOctets(_ number: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
}

/// The number that up to four octets are, least significant first.
func littleEndian(_ octets: some BidirectionalCollection<UInt8>) -> Int { octets.reversed().reduce(0) { $0 << 8 | Int($1) } }
