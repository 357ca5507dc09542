// SPDX-License-Identifier: MIT

import Foundation
import Testing
import TraceFile

@testable import Tracing

@Suite struct ImportSealingTests {
    private let dump = "0020000108313233343536FFFF\n9000\n00A4040000\n9000\n"

    @Test func aPINOfAnImportedCommandStandsBesideTheTraceAndNotInIt() throws {
        let folder = NSTemporaryDirectory() + "tapdeck-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let imported = try APDU4JImporter.importTrace([UInt8](dump.utf8), name: "x.dump")
        #expect(try imported.write(to: "\(folder)/x.pcapng") == 1)
        let trace = try Trace.load(path: "\(folder)/x.pcapng")
        let row = try #require(trace.rows.first { $0.direction == .sent })
        #expect(row.body == [0x00, 0x20, 0x00, 0x01, 0x08, 0, 0, 0, 0, 0, 0, 0, 0])
        #expect(row.comments == ["tapdeck sealed 5+8"])
        let whole = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/x.pcapng"))
        #expect(whole.range(of: Data("123456".utf8)) == nil)
        let store = try SecretStore.load(forTrace: "\(folder)/x.pcapng", session: trace.header.session, embedded: nil).store
        #expect(store.records.map(\.octets) == [[0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0xFF, 0xFF]])
        // Neither file is replaced unasked.
        #expect(throws: TraceFileError(.exists, path: "")) { try imported.write(to: "\(folder)/x.pcapng") }
        #expect(try imported.write(to: "\(folder)/x.pcapng", replacing: true) == 1)
    }

    @Test func aTraceWithoutSecretsHasNoFileBesideIt() throws {
        let folder = NSTemporaryDirectory() + "tapdeck-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let imported = try APDU4JImporter.importTrace([UInt8]("00A4040000\n9000\n".utf8), name: "x.dump")
        #expect(try imported.write(to: "\(folder)/x.pcapng") == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["x.pcapng"])
        #expect(try Trace.load(path: "\(folder)/x.pcapng") == imported.trace)
    }
}
