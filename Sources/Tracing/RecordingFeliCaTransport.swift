// SPDX-License-Identifier: MIT

import FoundationEssentials
import TagTransport

/// The proxy of a FeliCa card. A structured call is a row with its arguments; frames beneath it are rows of their own.
final class RecordingFeliCaTransport: RecordingTransport, FeliCaTagTransporting, @unchecked Sendable {
    private let card: any FeliCaTagTransporting

    init(_ card: any FeliCaTagTransporting, recorder: TraceRecorder, port: TraceRecorder.Port) {
        self.card = card
        super.init(card, recorder: recorder, port: port)
    }

    var systemCode: Data { card.systemCode }

    func readWithoutEncryption(serviceCodeList: [Data], blockList: [Data]) async throws -> [Data] {
        let arguments: [String: CallValue] = ["serviceCodeList": .list(serviceCodeList), "blockList": .list(blockList)]
        return try await recorder.structuredCall("readWithoutEncryption(serviceCodeList:blockList:)", arguments, on: port) {
            let blocks = try await card.readWithoutEncryption(serviceCodeList: serviceCodeList, blockList: blockList)
            return (.list(blocks), blocks)
        }
    }

    func readWithoutEncryption(serviceCode: Data, blockList: [Data]) async throws -> [Data] {
        let arguments: [String: CallValue] = ["serviceCode": .data(serviceCode), "blockList": .list(blockList)]
        return try await recorder.structuredCall("readWithoutEncryption(serviceCode:blockList:)", arguments, on: port) {
            let blocks = try await card.readWithoutEncryption(serviceCode: serviceCode, blockList: blockList)
            return (.list(blocks), blocks)
        }
    }

    func writeWithoutEncryption(serviceCodeList: [Data], blockList: [Data], blockData: [Data]) async throws {
        let arguments: [String: CallValue] = [
            "serviceCodeList": .list(serviceCodeList), "blockList": .list(blockList), "blockData": .list(blockData),
        ]
        let function = "writeWithoutEncryption(serviceCodeList:blockList:blockData:)"
        return try await recorder.structuredCall(function, arguments, secret: Self.secret(in: blockList), on: port) {
            (
                .none,
                try await card.writeWithoutEncryption(
                    serviceCodeList: serviceCodeList, blockList: blockList, blockData: blockData)
            )
        }
    }

    func writeWithoutEncryption(serviceCode: Data, blockList: [Data], blockData: [Data]) async throws {
        let arguments: [String: CallValue] = [
            "serviceCode": .data(serviceCode), "blockList": .list(blockList), "blockData": .list(blockData),
        ]
        let function = "writeWithoutEncryption(serviceCode:blockList:blockData:)"
        return try await recorder.structuredCall(function, arguments, secret: Self.secret(in: blockList), on: port) {
            (.none, try await card.writeWithoutEncryption(serviceCode: serviceCode, blockList: blockList, blockData: blockData))
        }
    }

    /// Blocks 80 (RC) and 87 (CK) of FeliCa Lite take challenges and keys; elements have two octets, or three with the
    /// block number least significant octet first (JIS X 6319-4).
    private static func secret(in blockList: [Data]) -> Set<String> {
        let isSecret = blockList.contains { element in
            let octets = Array(element)
            guard octets.count >= 2 else { return false }
            return (octets[1] == 0x80 || octets[1] == 0x87) && (octets.count == 2 || octets[2] == 0)
        }
        return isSecret ? ["blockData"] : []
    }

    func requestService(nodeCodeList: [Data]) async throws -> [Data] {
        try await recorder.structuredCall("requestService(nodeCodeList:)", ["nodeCodeList": .list(nodeCodeList)], on: port) {
            let versions = try await card.requestService(nodeCodeList: nodeCodeList)
            return (.list(versions), versions)
        }
    }
}
