// SPDX-License-Identifier: MIT

import CPcap
import Foundation
import Octets
import TestSupport
import Testing

@testable import TraceFile

@Suite struct WriterTests {
    @Test func whatIsWrittenIsReadBack() throws {
        let folder = try Folder()
        try Sample.write(to: folder("a.pcapng"))
        let trace = try Trace.load(path: folder("a.pcapng"))
        #expect(trace.header == Sample.header)
        #expect(trace.interfaces == Sample.interfaces)
        #expect(trace.rows == numbered(Sample.rows))
        // One block a kind, in the order in which the kinds appear.
        #expect(trace.secrets == [0, 3, 1, 2].map { Sample.secrets[$0] })
        #expect(trace.damage == nil)
    }

    /// The layout of specs/trace-format.md 2.2, checked there against Wireshark 4.0.17: the block at 0x594 of its sample.
    @Test func aRowIsOneBlockOfThisLayout() throws {
        var block = BlockBuilder()
        var packet = PacketBlock(time: 0x18EC_D0DD_3AD8_7780, interface: 0, direction: .sent, packetID: 2)
        packet.tags = ("iso7816", nil)
        block.packet(packet, [0x00, 0xA4, 0x04, 0x0C, 0x07, 0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01], ["SELECT eMRTD LDS1"])
        let expected = """
            06000000 74000000 00000000 DDD0EC18 8077D83A 24000000 24000000
            000C0008 69736F37 38313600 00230004 00000000 00000000 00A4040C 07A00000 02471001
            01001100 53454C45 43542065 4D525444 204C4453 31000000
            02000400 02000000 05000800 02000000 00000000 00000000 74000000
            """
        #expect(block.octets == (try Hex.decode(expected.replacingOccurrences(of: "\n", with: " "))))
    }

    @Test func theSideFilesRecordsHaveThisLayout() throws {
        var block = BlockBuilder()
        try block.secrets(
            [
                SecretRecord(
                    kind: .sealed, packetID: 11, interface: 2, direction: .received, name: "ab", offset: 5,
                    octets: [0x31, 0x32, 0x33])
            ],
            path: ""
        )
        let expected = """
            0A000000 2C000000 45534454 17000000 0B000000 0200 01 00 0200 05000000 03000000 6162 313233 00
            2C000000
            """
        #expect(block.octets == (try Hex.decode(expected.replacingOccurrences(of: "\n", with: " "))))
    }

    @Test func aTraceIsReadableByItsOwnerAlone() throws {
        let folder = try Folder()
        try Sample.write(to: folder("a.pcapng"))
        let mode = try FileManager.default.attributesOfItem(atPath: folder("a.pcapng"))[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test func aFileThatIsThereIsReplacedOnlyWhenAskedFor() throws {
        let folder = try Folder()
        let path = try folder.write([1, 2, 3], "a.pcapng")
        #expect(throws: TraceFileError(.exists, path: path)) { try Sample.write(to: path) }
        #expect(try folder.octets("a.pcapng") == [1, 2, 3])
        try Trace(header: Sample.header, interfaces: Sample.interfaces, rows: Sample.rows).write(to: path, replacing: true)
        #expect(try Trace.load(path: path).rows.count == 5)
    }

    @Test func everyRowIsInTheFileWhenItsCallReturns() throws {
        let folder = try Folder()
        var writer = try TraceWriter(creating: folder("a.pcapng"), header: Sample.header, interfaces: Sample.interfaces)
        for (count, row) in Sample.rows.enumerated() {
            try writer.write(row)
            #expect(try Trace.load(path: folder("a.pcapng")).rows.count == count + 1)
            #expect(writer.byteCount == UInt64(try folder.octets("a.pcapng").count))
        }
    }

    @Test func anInterfaceMayComeLater() throws {
        let folder = try Folder()
        var writer = try TraceWriter(creating: folder("a.pcapng"), header: Sample.header, interfaces: Sample.interfaces)
        try writer.write(Sample.rows[0])
        let index = try writer.addInterface(TraceInterface(.apdu(1)))
        #expect(index == 4)
        try writer.writeRow(time: 5, interface: index, direction: .sent, packetID: 9, dissector: "iso7816", body: [1, 2, 3, 4])
        let trace = try Trace.load(path: folder("a.pcapng"))
        #expect(trace.kind(of: trace.rows[1]) == .apdu(1))
    }

    @Test func aRowOfAnUnknownInterfaceIsRefused() throws {
        let folder = try Folder()
        var writer = try TraceWriter(creating: folder("a.pcapng"), header: Sample.header, interfaces: [])
        let before = writer.byteCount
        do throws(TraceFileError) {
            try writer.write(Sample.rows[0])
            Issue.record("it was written")
        } catch {
            #expect(error.code == .noSuchInterface(3))
        }
        #expect(writer.byteCount == before)
    }

    @Test func aClosedWriterRefuses() throws {
        let folder = try Folder()
        var writer = try TraceWriter(creating: folder("a.pcapng"), header: Sample.header, interfaces: Sample.interfaces)
        try writer.close()
        try writer.close()
        do throws(TraceFileError) {
            try writer.write(Sample.rows[0])
            Issue.record("it was written")
        } catch {
            #expect(error.code == .closed)
        }
    }

    @Test func aFullDiskLeavesWholeBlocksAndSaysHowMany() throws {
        let folder = try Folder()
        let room = Room(700)
        let file = try BlockFile(creating: folder("a.pcapng"), replacing: false) { descriptor, bytes, count in
            room.write(descriptor, bytes, count)
        }
        var writer = try TraceWriter(file, header: Sample.header, interfaces: Sample.interfaces)
        var caught: TraceFileError?
        while caught == nil {
            do throws(TraceFileError) { try writer.write(Sample.rows[1]) } catch { caught = error }
        }
        let size = try folder.octets("a.pcapng").count
        #expect(caught?.code == .diskFull(bytes: UInt64(size), rows: writer.rowCount))
        #expect(size < 700 && writer.rowCount > 0)
        let trace = try Trace.load(path: folder("a.pcapng"))
        #expect(trace.rows.count == writer.rowCount)
        #expect(trace.damage == nil)

        // Room was made: the next row follows without a gap.
        room.add(1000)
        try writer.write(Sample.rows[2])
        let after = try Trace.load(path: folder("a.pcapng"))
        #expect(after.damage == nil)
        #expect(after.rows.last?.body == [0x90, 0x00])
    }

    @Test func aLargeRowIsCutIntoPartsAndJoined() throws {
        let folder = try Folder()
        let body = (0..<450_001).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let large = TraceRow(
            time: 7, interface: 3, direction: nil, packetID: 4, dissector: "json", body: body, comments: ["tapdeck sealed 5+8"]
        )
        let titled = TraceRow(
            time: 8, interface: 1, direction: .sent, packetID: 5, dissector: "data", protocolText: "ISO15693", body: body
        )
        try Trace(header: Sample.header, interfaces: Sample.interfaces, rows: [large, titled, Sample.rows[2]]).write(
            to: folder("a.pcapng"))
        var rows = [large, titled, Sample.rows[2]]
        rows[0].frame = 1
        rows[1].frame = 4
        rows[2].frame = 7
        #expect(try Trace.load(path: folder("a.pcapng")).rows == rows)
    }

    @Test func partsThatDoNotFollowEachOtherStayRows() throws {
        let folder = try Folder()
        func part(_ text: String, _ id: UInt64 = 4) -> TraceRow {
            TraceRow(time: 7, interface: 3, direction: nil, packetID: id, dissector: "data", protocolText: text, body: [1])
        }
        let rows = [
            part("json part 1/3"), part("json part 2/3"), Sample.rows[2], part("json part 3/3"), part("json part 1/2"),
            part("json part 2/2", 5), part("json part 1/2"),
        ]
        try Trace(header: Sample.header, interfaces: Sample.interfaces, rows: rows).write(to: folder("a.pcapng"))
        let trace = try Trace.load(path: folder("a.pcapng"))
        #expect(trace.rows == numbered(rows))
        let reader = try TraceReader(path: folder("a.pcapng"))
        #expect(count(reader) == 7)
    }

    private func count(_ reader: consuming TraceReader) -> Int {
        var reader = reader
        reader.forEachRow { _ in }
        return reader.rowCount
    }

    @Test func aNameThatEndsWithGzIsCompressed() throws {
        let folder = try Folder()
        try Sample.write(to: folder("a.pcapng.gz"))
        try Sample.write(to: folder("a.pcapng"))
        let octets = try folder.octets("a.pcapng.gz")
        #expect(octets.starts(with: [0x1F, 0x8B]))
        #expect(octets.count < (try folder.octets("a.pcapng").count))
        #expect(try Trace.load(path: folder("a.pcapng.gz")) == Trace.load(path: folder("a.pcapng")))
    }

    @Test func aLargeCompressedTraceReadsBackWhole() throws {
        let folder = try Folder()
        var random = SplitMix(state: 5)
        let rows = (0..<300).map { number in
            TraceRow(
                time: UInt64(number), interface: 0, direction: .sent, packetID: 1, dissector: "iso7816",
                body: (0..<2_000).map { _ in UInt8.random(in: 0...255, using: &random) }
            )
        }
        try Trace(header: Sample.header, interfaces: Sample.interfaces, rows: rows).write(to: folder("a.pcapng.gz"))
        #expect(try Trace.load(path: folder("a.pcapng.gz")).rows == numbered(rows))
    }

    @Test func sealedRangesGoThroughAComment() throws {
        let ranges = [SealedRange(offset: 5, length: 8), SealedRange(offset: 13, length: 2)]
        #expect(SealedRange.comment(ranges) == "tapdeck sealed 5+8,13+2")
        #expect(SealedRange.parse(comment: "tapdeck sealed 5+8,13+2") == ranges)
        for comment in [
            "sealed 5+8", "tapdeck sealed ", "tapdeck sealed 5", "tapdeck sealed 5+0", "tapdeck sealed 5+-1",
            "tapdeck sealed 5+8,",
        ] {
            #expect(SealedRange.parse(comment: comment) == nil, "\(comment)")
        }
        var row = Sample.rows[1]
        row.comments = ["a note", "tapdeck sealed 5+7,6+7,4294967295+4294967295"]
        #expect(row.sealedRanges == [SealedRange(offset: 5, length: 7)])
    }

    @Test func textThatIsTooLongForItsFieldIsCutAtACharacter() throws {
        let folder = try Folder()
        var row = Sample.rows[2]
        row.comments = [String(repeating: "\u{20AC}", count: 30_000)]
        try Trace(header: Sample.header, interfaces: Sample.interfaces, rows: [row]).write(to: folder("a.pcapng"))
        let comment = try Trace.load(path: folder("a.pcapng")).rows.first?.comments.first
        #expect(comment == String(repeating: "\u{20AC}", count: 21_845))
    }
}

/// A disk with so many octets left.
private final class Room: @unchecked Sendable {
    private var left: Int

    init(_ left: Int) { self.left = left }

    func add(_ count: Int) { left += count }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
        let step = min(count, left)
        guard step > 0 else {
            errno = ENOSPC
            return -1
        }
        let written = Glibc.write(descriptor, bytes, step)
        left -= max(written, 0)
        return written
    }
}
