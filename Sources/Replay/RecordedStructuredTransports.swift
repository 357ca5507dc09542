// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TagTransport
import TraceFile

/// A recorded FeliCa card: structured calls are answered as wholes.
final class RecordedFeliCaTransport: RecordedTransport, FeliCaTagTransporting, @unchecked Sendable {
    var systemCode: Data { Data(card.transport.row.systemCode ?? []) }

    func readWithoutEncryption(serviceCodeList: [Data], blockList: [Data]) async throws -> [Data] {
        try list(
            try await answer(
                "readWithoutEncryption(serviceCodeList:blockList:)",
                ["serviceCodeList": json(serviceCodeList), "blockList": json(blockList)]
            )
        )
    }

    func readWithoutEncryption(serviceCode: Data, blockList: [Data]) async throws -> [Data] {
        try list(
            try await answer(
                "readWithoutEncryption(serviceCode:blockList:)", ["serviceCode": json(serviceCode), "blockList": json(blockList)]
            )
        )
    }

    func writeWithoutEncryption(serviceCodeList: [Data], blockList: [Data], blockData: [Data]) async throws {
        _ = try await answer(
            "writeWithoutEncryption(serviceCodeList:blockList:blockData:)",
            ["serviceCodeList": json(serviceCodeList), "blockList": json(blockList), "blockData": json(blockData)]
        )
    }

    func writeWithoutEncryption(serviceCode: Data, blockList: [Data], blockData: [Data]) async throws {
        _ = try await answer(
            "writeWithoutEncryption(serviceCode:blockList:blockData:)",
            ["serviceCode": json(serviceCode), "blockList": json(blockList), "blockData": json(blockData)]
        )
    }

    func requestService(nodeCodeList: [Data]) async throws -> [Data] {
        try list(try await answer("requestService(nodeCodeList:)", ["nodeCodeList": json(nodeCodeList)]))
    }
}

/// A recorded vicinity card: structured calls are answered as wholes.
final class RecordedISO15693Transport: RecordedTransport, ISO15693TagTransporting, @unchecked Sendable {
    var icManufacturerCode: Int { card.transport.row.icManufacturerCode ?? 0 }

    func readBlock(_ block: UInt8) async throws -> Data {
        try data(try await answer("readBlock(_:)", ["block": number(Int(block))]))
    }

    func writeBlock(_ block: UInt8, data: Data) async throws {
        _ = try await answer("writeBlock(_:data:)", ["block": number(Int(block)), "data": json(data)])
    }

    func readBlocks(range: NSRange) async throws -> [Data] {
        try list(try await answer("readBlocks(range:)", ["range": json(range)]))
    }

    func getSystemInfo() async throws -> ISO15693SystemInfo {
        let value = try await answer("getSystemInfo()", [:])
        guard case .object(let fields)? = value, case .integer(let dsfid)? = fields["dsfid"],
            case .integer(let afi)? = fields["afi"],
            case .integer(let size)? = fields["blockSize"], case .integer(let count)? = fields["blockCount"],
            case .integer(let reference)? = fields["icReference"]
        else { throw notAtHand }
        return ISO15693SystemInfo(
            uid: try data(fields["uid"]), dsfid: UInt8(truncatingIfNeeded: dsfid), afi: UInt8(truncatingIfNeeded: afi),
            blockSize: Int(size), blockCount: Int(count), icReference: UInt8(truncatingIfNeeded: reference)
        )
    }

    func getBlockSecurityStatus(range: NSRange) async throws -> [Bool] {
        guard case .array(let flags)? = try await answer("getBlockSecurityStatus(range:)", ["range": json(range)]) else {
            throw notAtHand
        }
        return try flags.map { value in
            guard case .bool(let flag) = value else { throw notAtHand }
            return flag
        }
    }

    func writeAFI(_ afi: UInt8) async throws { _ = try await answer("writeAFI(_:)", ["afi": number(Int(afi))]) }
    func lockAFI() async throws { _ = try await answer("lockAFI()", [:]) }
    func writeDSFID(_ dsfid: UInt8) async throws { _ = try await answer("writeDSFID(_:)", ["dsfid": number(Int(dsfid))]) }
    func lockDSFID() async throws { _ = try await answer("lockDSFID()", [:]) }

    func customCommand(code: Int, parameters: Data) async throws -> Data {
        let arguments: [String: JSONValue] = ["code": number(code), "parameters": json(parameters)]
        return try data(try await answer("customCommand(code:parameters:)", arguments))
    }

    func challenge(cryptoSuiteIdentifier: Int, message: Data) async throws {
        let arguments: [String: JSONValue] = ["cryptoSuiteIdentifier": number(cryptoSuiteIdentifier), "message": json(message)]
        _ = try await answer("challenge(cryptoSuiteIdentifier:message:)", arguments)
    }

    func authenticate(cryptoSuiteIdentifier: Int, message: Data) async throws -> ISO15693SecurityResponse {
        let arguments: [String: JSONValue] = ["cryptoSuiteIdentifier": number(cryptoSuiteIdentifier), "message": json(message)]
        return try securityResponse(try await answer("authenticate(cryptoSuiteIdentifier:message:)", arguments))
    }

    func keyUpdate(keyIdentifier: Int, message: Data) async throws -> ISO15693SecurityResponse {
        let arguments: [String: JSONValue] = ["keyIdentifier": number(keyIdentifier), "message": json(message)]
        return try securityResponse(try await answer("keyUpdate(keyIdentifier:message:)", arguments))
    }

    private func securityResponse(_ value: JSONValue?) throws -> ISO15693SecurityResponse {
        guard case .object(let fields)? = value, case .integer(let flags)? = fields["responseFlags"] else { throw notAtHand }
        return ISO15693SecurityResponse(responseFlags: Int(flags), data: try data(fields["data"]))
    }
}

/// The answer to a structured call lies among the secrets, which are not here.
private let notAtHand = TransportError(.malformedResponse, detail: "the recorded result is not among the secrets at hand")

private func json(_ data: Data) -> JSONValue { .string(Hex.encode(data)) }
private func json(_ list: [Data]) -> JSONValue { .array(list.map { .string(Hex.encode($0)) }) }
private func json(_ range: NSRange) -> JSONValue {
    .object(["location": .integer(Int64(range.location)), "length": .integer(Int64(range.length))])
}
private func number(_ value: Int) -> JSONValue { .integer(Int64(value)) }

private func data(_ value: JSONValue?) throws -> Data {
    guard case .string(let text)? = value, let octets = try? Hex.decode(text) else { throw notAtHand }
    return Data(octets)
}

private func list(_ value: JSONValue?) throws -> [Data] {
    guard case .array(let items)? = value else { throw notAtHand }
    return try items.map { try data($0) }
}
