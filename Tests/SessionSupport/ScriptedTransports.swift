// SPDX-License-Identifier: MIT

package import Foundation
package import Synchronization
package import TagTransport

/// A transport that answers from a table, and throws where a step says so. It keeps what it was asked.
package class ScriptedTransport: NFCTagTransport, @unchecked Sendable {
    package let answers: Mutex<[Result<[UInt8], TransportError>]>
    package let asked = Mutex<[[UInt8]]>([])
    package let identifier = Data([0x04, 0x11, 0x22, 0x33])

    package init(_ answers: [Result<[UInt8], TransportError>]) { self.answers = Mutex(answers) }

    package func answer(_ octets: [UInt8]) throws -> [UInt8] {
        asked.withLock { $0.append(octets) }
        return try answers.withLock { answers in
            guard !answers.isEmpty else { throw TransportError(.timeout, detail: "the script is at its end") }
            return try answers.removeFirst().get()
        }
    }

    package func send(_ data: Data) async throws -> Data { Data(try answer(Array(data))) }
    package func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU { try ResponseAPDU(bytes: try answer(apdu.octets)) }
}

package final class ScriptedISO7816Transport: ScriptedTransport, ISO7816TagTransporting, @unchecked Sendable {
    package var initialAID: String { "A0000002471001" }
}

package final class ScriptedFeliCaTransport: ScriptedTransport, FeliCaTagTransporting, @unchecked Sendable {
    package var systemCode: Data { Data([0x00, 0x03]) }

    package func readWithoutEncryption(serviceCode: Data, blockList: [Data]) async throws -> [Data] {
        let octets = try answer(Array(serviceCode) + blockList.joined())
        return stride(from: 0, to: octets.count, by: 16).map { Data(octets[$0..<min($0 + 16, octets.count)]) }
    }

    package func writeWithoutEncryption(serviceCode: Data, blockList: [Data], blockData: [Data]) async throws {
        _ = try answer(Array(serviceCode) + blockList.joined() + blockData.joined())
    }

    package func requestService(nodeCodeList: [Data]) async throws -> [Data] { [Data(try answer(Array(nodeCodeList.joined())))] }
}

package final class ScriptedISO15693Transport: ScriptedTransport, ISO15693TagTransporting, @unchecked Sendable {
    package var icManufacturerCode: Int { 0x04 }

    package func readBlock(_ block: UInt8) async throws -> Data { Data(try answer([0x20, block])) }
    package func writeBlock(_ block: UInt8, data: Data) async throws { _ = try answer([0x21, block] + data) }
    package func readBlocks(range: NSRange) async throws -> [Data] {
        [Data(try answer([0x23, UInt8(range.location), UInt8(range.length)]))]
    }
    package func getSystemInfo() async throws -> ISO15693SystemInfo {
        let octets = try answer([0x2B])
        return ISO15693SystemInfo(uid: Data(octets), dsfid: 1, afi: 2, blockSize: 4, blockCount: 28, icReference: 3)
    }
    package func getBlockSecurityStatus(range: NSRange) async throws -> [Bool] { try answer([0x2C]).map { $0 != 0 } }
    package func customCommand(code: Int, parameters: Data) async throws -> Data { Data(try answer([UInt8(code)] + parameters)) }
}

/// A reader that is told things itself.
package final class ScriptedReader: ScriptedTransport, CardConnection, @unchecked Sendable {
    package var readerName: String { "reader" }
    package var atr: Data { Data() }
    package var protocolName: String { "" }
    package func resetCard() async throws -> Data { Data() }
    package func removeCard() async throws {}
    package func control(code: UInt32, data: Data) async throws -> Data { Data(try answer(Array(data))) }
}
