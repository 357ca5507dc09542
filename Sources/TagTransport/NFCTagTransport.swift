// SPDX-License-Identifier: MIT

public import Foundation

/// A tag or card that answers: the one door between the card library and whatever carries its commands.
///
/// Raw frames go through ``send(_:)``, command APDUs through ``sendAPDU(_:)``. A transport that has only one of the two
/// throws ``TransportError`` with the case `unsupportedOperation` from the other.
public protocol NFCTagTransport: Sendable {
    /// Sends one frame as it is and returns the frame that came back.
    ///
    /// - Throws: ``TransportError``.
    func send(_ data: Data) async throws -> Data

    /// Sends one command APDU and returns its response, whatever its status word is (ISO/IEC 7816-4 5.1).
    ///
    /// - Throws: ``TransportError``.
    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU

    /// The UID, PUPI or IDm of the tag; empty when the reader does not tell.
    var identifier: Data { get }
}

/// A card with an ISO/IEC 7816-4 application structure.
public protocol ISO7816TagTransporting: NFCTagTransport {
    /// The application identifier that was selected when the card was found, in hexadecimal; empty when none was.
    var initialAID: String { get }

    /// Sends one command APDU and follows `61xx` with GET RESPONSE (ISO/IEC 7816-4 11.10.1). The data fields are
    /// joined; the status word is that of the last response.
    ///
    /// - Throws: ``TransportError``; among others when the card promises more without an end.
    func sendAPDUWithChaining(_ apdu: CommandAPDU) async throws -> ResponseAPDU
}

/// A FeliCa card (JIS X 6319-4). Service and node codes are two octets, least significant first, as they travel.
public protocol FeliCaTagTransporting: NFCTagTransport {
    /// The system code, two octets, most significant first.
    var systemCode: Data { get }

    /// Read Without Encryption over several services; one block of 16 octets for each element of `blockList`.
    func readWithoutEncryption(serviceCodeList: [Data], blockList: [Data]) async throws -> [Data]
    /// Read Without Encryption over one service.
    func readWithoutEncryption(serviceCode: Data, blockList: [Data]) async throws -> [Data]
    /// Write Without Encryption over several services.
    func writeWithoutEncryption(serviceCodeList: [Data], blockList: [Data], blockData: [Data]) async throws
    /// Write Without Encryption over one service.
    func writeWithoutEncryption(serviceCode: Data, blockList: [Data], blockData: [Data]) async throws
    /// Request Service: the key version of each node, two octets, least significant first; `FFFF` where there is none.
    func requestService(nodeCodeList: [Data]) async throws -> [Data]
}

extension FeliCaTagTransporting {
    public func readWithoutEncryption(serviceCodeList: [Data], blockList: [Data]) async throws -> [Data] {
        guard serviceCodeList.count == 1 else { throw TransportError.unsupported("a list of \(serviceCodeList.count) services") }
        return try await readWithoutEncryption(serviceCode: serviceCodeList[0], blockList: blockList)
    }

    public func writeWithoutEncryption(serviceCodeList: [Data], blockList: [Data], blockData: [Data]) async throws {
        guard serviceCodeList.count == 1 else { throw TransportError.unsupported("a list of \(serviceCodeList.count) services") }
        try await writeWithoutEncryption(serviceCode: serviceCodeList[0], blockList: blockList, blockData: blockData)
    }
}

/// A vicinity card (ISO/IEC 15693-3).
public protocol ISO15693TagTransporting: NFCTagTransport {
    /// The manufacturer code of the UID (ISO/IEC 7816-6).
    var icManufacturerCode: Int { get }

    func readBlock(_ block: UInt8) async throws -> Data
    func writeBlock(_ block: UInt8, data: Data) async throws
    func readBlocks(range: NSRange) async throws -> [Data]
    func getSystemInfo() async throws -> ISO15693SystemInfo
    /// True for each block that is locked.
    func getBlockSecurityStatus(range: NSRange) async throws -> [Bool]

    func writeAFI(_ afi: UInt8) async throws
    func lockAFI() async throws
    func writeDSFID(_ dsfid: UInt8) async throws
    func lockDSFID() async throws
    func customCommand(code: Int, parameters: Data) async throws -> Data
    func challenge(cryptoSuiteIdentifier: Int, message: Data) async throws
    func authenticate(cryptoSuiteIdentifier: Int, message: Data) async throws -> ISO15693SecurityResponse
    func keyUpdate(keyIdentifier: Int, message: Data) async throws -> ISO15693SecurityResponse
}

extension ISO15693TagTransporting {
    public func writeAFI(_ afi: UInt8) async throws { throw TransportError.unsupported("writeAFI") }
    public func lockAFI() async throws { throw TransportError.unsupported("lockAFI") }
    public func writeDSFID(_ dsfid: UInt8) async throws { throw TransportError.unsupported("writeDSFID") }
    public func lockDSFID() async throws { throw TransportError.unsupported("lockDSFID") }
    public func customCommand(code: Int, parameters: Data) async throws -> Data {
        throw TransportError.unsupported("customCommand")
    }
    public func challenge(cryptoSuiteIdentifier: Int, message: Data) async throws {
        throw TransportError.unsupported("challenge")
    }
    public func authenticate(cryptoSuiteIdentifier: Int, message: Data) async throws -> ISO15693SecurityResponse {
        throw TransportError.unsupported("authenticate")
    }
    public func keyUpdate(keyIdentifier: Int, message: Data) async throws -> ISO15693SecurityResponse {
        throw TransportError.unsupported("keyUpdate")
    }
}

/// What Get System Information tells (ISO/IEC 15693-3 10.4.12).
public struct ISO15693SystemInfo: Sendable, Codable, Equatable {
    /// The UID, most significant octet first.
    public var uid: Data
    public var dsfid: UInt8
    public var afi: UInt8
    /// Octets in a block.
    public var blockSize: Int
    public var blockCount: Int
    public var icReference: UInt8

    public init(uid: Data, dsfid: UInt8, afi: UInt8, blockSize: Int, blockCount: Int, icReference: UInt8) {
        self.uid = uid
        self.dsfid = dsfid
        self.afi = afi
        self.blockSize = blockSize
        self.blockCount = blockCount
        self.icReference = icReference
    }
}

/// The answer to Authenticate or KeyUpdate (ISO/IEC 15693-3).
public struct ISO15693SecurityResponse: Sendable, Codable, Equatable {
    public var responseFlags: Int
    public var data: Data

    public init(responseFlags: Int, data: Data) {
        self.responseFlags = responseFlags
        self.data = data
    }
}
