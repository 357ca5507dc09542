// SPDX-License-Identifier: MIT

import Foundation
import TagTransport

/// The proxy of a vicinity card. A structured call is a row with its arguments; frames beneath it are rows of their own.
final class RecordingISO15693Transport: RecordingTransport, ISO15693TagTransporting, @unchecked Sendable {
    private let card: any ISO15693TagTransporting

    init(_ card: any ISO15693TagTransporting, recorder: TraceRecorder, port: TraceRecorder.Port) {
        self.card = card
        super.init(card, recorder: recorder, port: port)
    }

    var icManufacturerCode: Int { card.icManufacturerCode }

    func readBlock(_ block: UInt8) async throws -> Data {
        try await recorder.structuredCall("readBlock(_:)", ["block": .integer(Int(block))], on: port) {
            let data = try await card.readBlock(block)
            return (.data(data), data)
        }
    }

    func writeBlock(_ block: UInt8, data: Data) async throws {
        try await recorder.structuredCall("writeBlock(_:data:)", ["block": .integer(Int(block)), "data": .data(data)], on: port) {
            (.none, try await card.writeBlock(block, data: data))
        }
    }

    func readBlocks(range: NSRange) async throws -> [Data] {
        try await recorder.structuredCall("readBlocks(range:)", ["range": .range(range)], on: port) {
            let blocks = try await card.readBlocks(range: range)
            return (.list(blocks), blocks)
        }
    }

    func getSystemInfo() async throws -> ISO15693SystemInfo {
        try await recorder.structuredCall("getSystemInfo()", [:], on: port) {
            let info = try await card.getSystemInfo()
            return (.systemInfo(info), info)
        }
    }

    func getBlockSecurityStatus(range: NSRange) async throws -> [Bool] {
        try await recorder.structuredCall("getBlockSecurityStatus(range:)", ["range": .range(range)], on: port) {
            let status = try await card.getBlockSecurityStatus(range: range)
            return (.flags(status), status)
        }
    }

    func writeAFI(_ afi: UInt8) async throws {
        try await recorder.structuredCall("writeAFI(_:)", ["afi": .integer(Int(afi))], on: port) {
            (.none, try await card.writeAFI(afi))
        }
    }

    func lockAFI() async throws {
        try await recorder.structuredCall("lockAFI()", [:], on: port) { (.none, try await card.lockAFI()) }
    }

    func writeDSFID(_ dsfid: UInt8) async throws {
        try await recorder.structuredCall("writeDSFID(_:)", ["dsfid": .integer(Int(dsfid))], on: port) {
            (.none, try await card.writeDSFID(dsfid))
        }
    }

    func lockDSFID() async throws {
        try await recorder.structuredCall("lockDSFID()", [:], on: port) { (.none, try await card.lockDSFID()) }
    }

    func customCommand(code: Int, parameters: Data) async throws -> Data {
        // B1, B3 and B4 are the password commands of NXP and ST.
        let secret: Set<String> = [0xB1, 0xB3, 0xB4].contains(code) ? ["parameters"] : []
        let arguments: [String: CallValue] = ["code": .integer(code), "parameters": .data(parameters)]
        return try await recorder.structuredCall("customCommand(code:parameters:)", arguments, secret: secret, on: port) {
            let answer = try await card.customCommand(code: code, parameters: parameters)
            return (.data(answer), answer)
        }
    }

    func challenge(cryptoSuiteIdentifier: Int, message: Data) async throws {
        let arguments: [String: CallValue] = [
            "cryptoSuiteIdentifier": .integer(cryptoSuiteIdentifier), "message": .data(message),
        ]
        try await recorder.structuredCall("challenge(cryptoSuiteIdentifier:message:)", arguments, on: port) {
            (.none, try await card.challenge(cryptoSuiteIdentifier: cryptoSuiteIdentifier, message: message))
        }
    }

    func authenticate(cryptoSuiteIdentifier: Int, message: Data) async throws -> ISO15693SecurityResponse {
        let arguments: [String: CallValue] = [
            "cryptoSuiteIdentifier": .integer(cryptoSuiteIdentifier), "message": .data(message),
        ]
        return try await recorder.structuredCall("authenticate(cryptoSuiteIdentifier:message:)", arguments, on: port) {
            let response = try await card.authenticate(cryptoSuiteIdentifier: cryptoSuiteIdentifier, message: message)
            return (.securityResponse(response), response)
        }
    }

    func keyUpdate(keyIdentifier: Int, message: Data) async throws -> ISO15693SecurityResponse {
        let arguments: [String: CallValue] = ["keyIdentifier": .integer(keyIdentifier), "message": .data(message)]
        return try await recorder.structuredCall("keyUpdate(keyIdentifier:message:)", arguments, secret: ["message"], on: port) {
            let response = try await card.keyUpdate(keyIdentifier: keyIdentifier, message: message)
            return (.securityResponse(response), response)
        }
    }
}
