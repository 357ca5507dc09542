// SPDX-License-Identifier: MIT

import Foundation
import Testing

@testable import TraceFile

/// A folder that goes away with the value.
final class Folder {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("tapdeck-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func callAsFunction(_ name: String) -> String { "\(path)/\(name)" }

    func octets(_ name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: self(name)))) }

    func write(_ octets: [UInt8], _ name: String) throws -> String {
        try Data(octets).write(to: URL(fileURLWithPath: self(name)))
        return self(name)
    }
}

/// Programs of Wireshark that tests compare with.
struct Tool {
    let name: String

    static let tshark = Tool(name: "tshark")
    static let editcap = Tool(name: "editcap")
    static let mergecap = Tool(name: "mergecap")
    static let capinfos = Tool(name: "capinfos")

    var path: String? {
        ["/usr/bin", "/usr/local/bin"].map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    var isPresent: Bool { path != nil }

    var absence: Comment { "\(name) is not installed" }

    /// Runs it and gives its status and standard output.
    func callAsFunction(_ arguments: String...) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path ?? "/nonexistent")
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: data, as: UTF8.self))
    }

    func lines(_ arguments: String...) throws -> [String] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path ?? "/nonexistent")
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

enum Sample {
    static let session = "6E9A4C2B-0D8F-4B9E-8A53-5A1F0C7F3B11"
    static let header = TraceHeader(
        session: session, hardware: "x86_64", system: "Linux 6.1", application: "tapdeck 1.0"
    )
    static let interfaces = [
        TraceInterface(.apdu(0), description: "ACS ACR1252U 00 00"),
        TraceInterface(.rf(0), description: "frames of the same reader"),
        TraceInterface(.reader(0)), TraceInterface(.meta),
    ]
    static let start: UInt64 = 1_764_500_000_000_000_000

    static let rows: [TraceRow] = [
        TraceRow(
            time: start, interface: 3, direction: nil, packetID: 1, dissector: "json",
            body: MetaRow.mark(MetaRow.Mark(text: "hello")).body
        ),
        TraceRow(
            time: start + 1_000, interface: 0, direction: .sent, packetID: 2, dissector: "iso7816",
            body: [0x00, 0xA4, 0x04, 0x0C, 0x07, 0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01],
            comments: ["SELECT eMRTD LDS1", "two"]
        ),
        TraceRow(
            time: start + 2_000, interface: 0, direction: .received, packetID: 2, dissector: "iso7816", body: [0x90, 0x00]
        ),
        TraceRow(
            time: start + 3_000, interface: 1, direction: .sent, packetID: 3, dissector: "data", protocolText: "ISO15693",
            body: [0x26, 0x01, 0x00]
        ),
        TraceRow(time: start + 4_000, interface: 1, direction: .received, packetID: 3, dissector: "data", body: []),
    ]

    static let secrets = [
        SecretRecord(kind: .entropy, packetID: 2, name: "call:1:bac.rndIFD:0", octets: [1, 2, 3, 4, 5, 6, 7, 8]),
        SecretRecord(kind: .key, packetID: 2, name: "bac.seed", octets: [UInt8](repeating: 0x23, count: 16)),
        SecretRecord(kind: .sealed, packetID: 2, interface: 0, direction: .sent, offset: 5, octets: [0x31, 0x32]),
        SecretRecord(kind: .entropy, packetID: 4, name: "call:1:bac.kIFD:0", octets: [9]),
    ]

    static func write(to path: String) throws {
        try Trace(header: header, interfaces: interfaces, rows: rows, secrets: secrets).write(to: path)
    }

    static func octets() throws -> [UInt8] {
        let folder = try Folder()
        try write(to: folder("a.pcapng"))
        return try folder.octets("a.pcapng")
    }
}

/// The rows with the frame numbers that a file of nothing else gives them.
func numbered(_ rows: [TraceRow]) -> [TraceRow] {
    zip(rows, 1...).map { row, frame in
        var row = row
        row.frame = frame
        return row
    }
}
