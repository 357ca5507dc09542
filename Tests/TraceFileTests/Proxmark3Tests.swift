// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TestSupport
import Testing

@testable import TraceFile

@Suite struct Proxmark3Tests {
    /// A record as the device writes it, with the parity bits that the frame should have.
    private func record(_ ticks: UInt32, _ hex: String, isAnswer: Bool = false, duration: UInt16 = 100) throws -> [UInt8] {
        let frame = try Hex.decode(hex)
        var octets = littleEndian(ticks) + [UInt8(truncatingIfNeeded: duration), UInt8(duration >> 8)]
        octets += [UInt8(truncatingIfNeeded: frame.count), UInt8(frame.count >> 8) | (isAnswer ? 0x80 : 0)] + frame
        for start in stride(from: 0, to: frame.count, by: 8) {
            var bits: UInt8 = 0
            for index in start..<min(start + 8, frame.count) where frame[index].nonzeroBitCount % 2 == 0 {
                bits |= 0x80 >> UInt8(index - start)
            }
            octets.append(bits)
        }
        return octets
    }

    private func imported(_ octets: [UInt8], _ rf: RFProtocol? = nil) -> ImportedTrace {
        Proxmark3Importer.importTrace(octets, protocol: rf, name: "x.trace")
    }

    private func frames(_ imported: ImportedTrace) -> [TraceRow] { imported.trace.rows.filter { $0.interface == 0 } }

    /// Activation of a type A card with RATS and one block each way.
    private func activation() throws -> [UInt8] {
        try [
            record(0, "26"), record(2_000, "4403", isAnswer: true), record(10_000, "937088046221CFE0CF"),
            record(20_000, "20FC70", isAnswer: true), record(30_000, "E0803173"),
            record(40_000, "06757781028002F0", isAnswer: true),
            record(13_560_000, "0200A4040C07A0000002471001B1B2"), record(13_580_000, "029000F109", isAnswer: true),
        ].flatMap { $0 }
    }

    @Test func aCommandAndItsAnswerShareANumberAndTheirTimesAreExact() throws {
        let rows = frames(imported(try activation()))
        #expect(rows.map(\.packetID) == [3, 3, 4, 4, 5, 5, 6, 6])
        #expect(rows.map(\.direction) == [.sent, .received, .sent, .received, .sent, .received, .sent, .received])
        // 13,560,000 carrier periods are one second; 2,000 are 147,492.6 nanoseconds.
        #expect(rows[6].time == 1_000_000_000)
        #expect(rows[1].time == 147_492)
        #expect(rows.allSatisfy { $0.dissector == "iso14443" })
        #expect(rows[0].body == [0x00, 0xFE, 0x00, 0x01, 0x26])
        #expect(rows[1].body == [0x00, 0xFF, 0x00, 0x02, 0x44, 0x03])
    }

    @Test func anAnswerWithoutACommandHasANumberOfItsOwn() throws {
        let octets = try record(0, "26") + record(1, "4403", isAnswer: true) + record(2, "4403", isAnswer: true)
        #expect(frames(imported(octets)).map(\.packetID) == [3, 3, 4])
    }

    @Test func theCountThatTurnsOverGoesOn() throws {
        let octets = try record(0xFFFF_FF00, "26") + record(0x100, "4403", isAnswer: true)
        let rows = frames(imported(octets))
        #expect(rows[1].time - rows[0].time == 37_758 || rows[1].time - rows[0].time == 37_757)
    }

    @Test func ultralightCommandsAreNeverFramesOfTheStandard() throws {
        let select = try record(0, "937088046221CFE0CF") + record(1, "00FE51", isAnswer: true)
        let octets = try select + record(2, "300426EE") + record(3, "00112233", isAnswer: true) + record(4, "1A004176")
        let rows = frames(imported(octets))
        #expect(rows.map(\.dissector) == ["iso14443", "iso14443", "mifare", "data", "data"])
        #expect(rows[2].protocolText == "MIFARE Ultralight")
        #expect(rows[3].protocolText == "MIFARE Ultralight")
    }

    @Test func whatFollowsAClassicAuthenticationIsData() throws {
        let octets =
            try record(0, "937056DD89787ABA96") + record(1, "08B6DD", isAnswer: true) + record(2, "6000F57B")
            + record(3, "1ED24A6A", isAnswer: true) + record(4, "0202020202") + record(5, "52")
        let rows = frames(imported(octets))
        #expect(rows.map(\.dissector) == ["iso14443", "iso14443", "data", "data", "data", "iso14443"])
        #expect(rows[4].protocolText == "MIFARE Classic")
    }

    @Test func aForcedProtocolIsSaidAndKept() throws {
        let octets = try record(0, "26") + record(1, "4403", isAnswer: true)
        let imported = imported(octets, .iso15693)
        #expect(imported.protocol == .iso15693)
        #expect(!imported.isByContent)
        #expect(imported.summary[0] == "imported from Proxmark3 trace x.trace: 2 frames, ISO15693 as told")
        #expect(frames(imported).allSatisfy { $0.dissector == "data" && $0.protocolText == "ISO15693" })
        let mark = imported.trace.rows.first.flatMap { MetaRow(body: $0.body) }
        #expect(mark == .mark(MetaRow.Mark(text: imported.summary[0])))
    }

    @Test func felicaFramesStandWithoutSyncLengthAndChecksum() throws {
        // Polling for every system (JIS X 6319-4), as it stands in many sources: checksum 0921.
        let octets = try record(0, "B24D0600FFFF00000921") + record(1, "0600FFFF00000922", isAnswer: true)
        let imported = imported(octets)
        #expect(imported.protocol == .felica)
        let rows = frames(imported)
        #expect(rows[0].dissector == "felica")
        #expect(rows[0].body == [0x00, 0xFF, 0xFF, 0x00, 0x00])
        // A wrong checksum: the frame stays as it was heard.
        #expect(rows[1].dissector == "data")
        #expect(rows[1].protocolText == "FeliCa")
        #expect(rows[1].body.count == 8)
    }

    @Test func framesThatNothingTellsAreData() throws {
        let imported = imported(try record(0, "010203") + record(1, "04", isAnswer: true))
        #expect(imported.protocol == nil)
        #expect(imported.summary[0].hasSuffix("2 frames, protocol not recognised"))
        #expect(frames(imported).map(\.protocolText) == ["RF", "RF"])
    }

    @Test func aFrameWithoutOctetsIsAnEmptyRow() throws {
        let imported = imported(try record(0, "26") + record(1, "", isAnswer: true) + record(2, ""))
        #expect(imported.damage == nil)
        #expect(frames(imported).map(\.body) == [[0x00, 0xFE, 0x00, 0x01, 0x26], [], []])
    }

    @Test func aDurationThatOverflowedIsSaid() throws {
        let long = String(repeating: "00", count: 64)
        let octets = try record(0, "26") + record(1, "0200A4040C00", duration: 0) + record(2, long, isAnswer: true, duration: 0)
        let said = imported(octets, .iso14443A).summary.first { $0.contains("16 bits") }
        #expect(
            said == "1 frame lasted longer than the device's 16 bits can say, the first at byte 25: when they ended is not known")
    }

    @Test func anInputCutAnywhereKeepsItsWholeRecords() throws {
        let octets = try activation()
        let ends = [Int](Proxmark3Record.parse(octets).records.map(\.offset).dropFirst()) + [octets.count]
        for length in 0...octets.count {
            let cut = imported([UInt8](octets[..<length]))
            let whole = ends.filter { $0 <= length }.count
            #expect(frames(cut).count == whole)
            #expect((cut.damage == nil) == (length == 0 || ends.contains(length)))
            #expect(cut.damage.map { $0.offset == UInt64(whole == 0 ? 0 : ends[whole - 1]) } ?? true)
        }
    }

    @Test func theSameInputGivesTheSameFile() throws {
        let folder = try Folder()
        let path = try folder.write(try activation(), "x.trace")
        try Proxmark3Importer.importFile(path, protocol: nil).trace.write(to: folder("a.pcapng"))
        try Proxmark3Importer.importFile(path, protocol: nil).trace.write(to: folder("b.pcapng"))
        #expect(try folder.octets("a.pcapng") == folder.octets("b.pcapng"))
        // RFC 9562: version 8, variant 10.
        let session = Array(try #require(try Trace.load(path: folder("a.pcapng")).header.session))
        #expect(session.count == 36 && session[14] == "8" && "89AB".contains(session[19]))
    }

    /// CRC_A of ISO/IEC 14443-3 annex B: 0000 -> A0 1E, 1234 -> 26 CF; CRC_B: 000000 -> CC C6, 0FAAFF -> FC D1.
    @Test func checksumsAreThoseOfTheStandardsExamples() throws {
        #expect(FrameChecksum.endsWithCRCA(try Hex.decode("0000A01E")[...]))
        #expect(FrameChecksum.endsWithCRCA(try Hex.decode("123426CF")[...]))
        #expect(FrameChecksum.endsWithCRCB(try Hex.decode("000000CCC6")[...]))
        #expect(FrameChecksum.endsWithCRCB(try Hex.decode("0FAAFFFCD1")[...]))
        #expect(!FrameChecksum.endsWithCRCA(try Hex.decode("0000A01F")[...]))
    }
}

/// The sixteen captures of others; figures counted in the files by hand.
@Suite(.enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence)))
struct Proxmark3CaptureTests {
    /// Name, frames, protocol, frames under `iso14443`.
    static let captures: [(name: String, frames: Int, rf: RFProtocol, iso14443: Int)] = [
        ("hf_14a_mfu-sim", 306, .iso14443A, 170), ("hf_14a_mfu", 22, .iso14443A, 10),
        ("hf_14a_mfuc_defaultkey", 16, .iso14443A, 10),
        ("hf_14a_mful_aes_defaultkey", 14, .iso14443A, 10), ("hf_14a_reader_4b", 6, .iso14443A, 6),
        ("hf_14a_reader_7b_rats", 16, .iso14443A, 16), ("hf_14b_cryptorf_select", 12, .iso14443B, 8),
        ("hf_14b_reader", 2, .iso14443B, 2),
        ("hf_15_reader", 2, .iso15693, 0), ("hf_iclass_sniff", 4, .iClass, 0), ("hf_mf_hid_sio_sim", 46, .iso14443A, 16),
        ("hf_mfp_mad_sl3", 24, .iso14443A, 24), ("hf_visa_apple_ecp", 34, .iso14443A, 32),
        ("lf_HitagS256_dump", 21, .lowFrequency, 0),
        ("chal2", 35, .iso14443A, 35), ("chal3-1", 41, .iso14443A, 41),
    ]

    static func path(_ name: String) -> String? {
        guard let folder = SharedData.folder?.appendingPathComponent("data").path else { return nil }
        let files = FileManager.default.enumerator(atPath: folder)
        while let file = files?.nextObject() as? String {
            if file.hasSuffix("/\(name).trace") { return "\(folder)/\(file)" }
        }
        return nil
    }

    @Test(arguments: captures) func everyCaptureIsImportedWhole(_ name: String, _ count: Int, _ rf: RFProtocol, _ iso14443: Int)
        throws
    {
        let folder = try Folder()
        let path = try #require(Self.path(name))
        let imported = try Proxmark3Importer.importFile(path, protocol: nil)
        try imported.trace.write(to: folder("x.pcapng"))
        let trace = try Trace.load(path: folder("x.pcapng"))
        #expect(trace == imported.trace)
        let frames = trace.rows.filter { $0.interface == 0 }
        #expect(frames.count == count)
        #expect(imported.protocol == rf)
        #expect(frames.filter { $0.dissector == "iso14443" }.count == iso14443)
        #expect(frames.filter { $0.dissector != "iso14443" }.allSatisfy { $0.protocolText != nil })
        if name == "hf_iclass_sniff" {
            #expect(imported.damage?.offset == 326)
            #expect(imported.damage?.kind == .damaged)
            #expect(imported.damage?.description == "damaged in record 5, at byte 326: the record says 404 bytes, 178 are there")
        } else {
            #expect(imported.damage == nil)
        }
    }

    @Test(.enabled(if: Tool.tshark.isPresent, Tool.tshark.absence), arguments: captures.map(\.name))
    func tsharkMisreadsNoFrame(_ name: String) throws {
        let folder = try Folder()
        let imported = try Proxmark3Importer.importFile(try #require(Self.path(name)), protocol: nil)
        try imported.trace.write(to: folder("x.pcapng"))
        let rows = imported.trace.rows
        let lines = try Tool.tshark.lines(
            "-r", folder("x.pcapng"), "-T", "fields", "-E", "separator=|", "-e", "frame.number", "-e", "iso14443.crc.status",
            "-e",
            "_ws.expert.message", "-e", "_ws.col.Protocol"
        )
        #expect(lines.count == rows.count)
        for (line, row) in zip(lines, rows) {
            let fields = line.split(separator: "|", omittingEmptySubsequences: false)
            try #require(fields.count == 4, "\(line)")
            #expect(fields[0] == "\(row.frame)")
            // No wrong checksum, no malformed packet, no unknown command.
            #expect(fields[2].isEmpty, "\(name) frame \(row.frame): \(fields[2])")
            guard row.dissector == "iso14443" else { continue }
            #expect(fields[3] == "ISO 14443")
            let frame = row.body.dropFirst(4)
            let hasChecksum = FrameChecksum.endsWithCRCA(frame) || FrameChecksum.endsWithCRCB(frame)
            #expect((fields[1] == "1") == hasChecksum, "\(name) frame \(row.frame)")
        }
    }
}
