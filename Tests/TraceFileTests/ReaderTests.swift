// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TestSupport
import Testing

@testable import TraceFile

@Suite struct ReaderTests {
    @Test func aFileOfTheOtherByteOrderReadsTheSame() throws {
        let octets = try Sample.octets()
        let swapped = swapByteOrder(octets)
        #expect(swapped != octets)
        #expect(try Trace(octets: swapped) == Trace(octets: octets))
    }

    @Test func aCompressedFileReadsTheSame() throws {
        let folder = try Folder()
        let octets = try Sample.octets()
        // A stored gzip member (RFC 1952, RFC 1951 3.2.4), split in two members to prove that they join.
        let path = try folder.write(stored(octets[..<100]) + stored(octets[100...]), "a.pcapng.gz")
        #expect(try Trace.load(path: path) == Trace(octets: octets))
    }

    @Test func aCompressedFileThatIsCutIsDamagedAndKeepsWhatCameBefore() throws {
        let folder = try Folder()
        let octets = try Sample.octets()
        let path = try folder.write([UInt8](stored(octets[...]).dropLast(30)), "a.pcapng.gz")
        let trace = try Trace.load(path: path)
        #expect(trace.damage?.kind == .damaged)
        #expect(trace.rows.count >= 4)
    }

    @Test func unknownBlocksArePassedOverAndThoseThatWiresharkNumbersTakeANumber() throws {
        var octets = try Sample.octets()
        let ends = blockEnds(octets)
        // Header and four interfaces, then three secrets blocks, then the rows.
        let place = ends[8]
        let blocks: [[UInt8]] = [
            block(0x0BAD, [0x09, 0x7F, 0, 0, 1, 2, 3, 4]), block(0x8000_0BAD, [1, 2, 3, 4]), block(9, [0x4D, 0x3D, 0x61, 0x0A]),
            block(5, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), block(0x7777_7777, []),
        ]
        octets.insert(contentsOf: blocks.joined(), at: place)
        let frames = try Trace(octets: octets).rows.map(\.frame)
        #expect(frames == [1, 4, 5, 6, 7])
    }

    @Test func simpleAndOldPacketBlocksAreRows() throws {
        var octets = [UInt8](try Sample.octets()[..<blockEnds(try Sample.octets())[4]])
        octets += block(3, [3, 0, 0, 0, 0xAA, 0xBB, 0xCC, 0])
        octets += block(
            2, [1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0xDD, 0xEE, 0, 0, 2, 0, 4, 0, 1, 0, 0, 0])
        let trace = try Trace(octets: octets)
        #expect(trace.damage == nil)
        #expect(trace.rows.map(\.body) == [[0xAA, 0xBB, 0xCC], [0xDD, 0xEE]])
        #expect(trace.rows.map(\.interface) == [0, 1])
        #expect(trace.rows.map(\.time) == [0, 5])
        #expect(trace.rows.map(\.direction) == [nil, .received])
    }

    @Test func severalSectionsHaveTheirOwnInterfaces() throws {
        let octets = try Sample.octets()
        let trace = try Trace(octets: octets + swapByteOrder(octets))
        #expect(trace.damage == nil)
        #expect(trace.interfaces == Sample.interfaces + Sample.interfaces)
        #expect(trace.rows.count == 10)
        #expect(trace.rows[5].interface == 7)
        #expect(trace.rows[5].frame == 6)
        #expect(Array(trace.rows[5...].map(\.body)) == Array(trace.rows[..<5].map(\.body)))
    }

    @Test(arguments: [
        // resolution, offset in seconds, stamp, nanoseconds
        (UInt8(6), Int64(0), UInt64(5), UInt64(5_000)), (9, 0, 5, 5), (0, 0, 5, 5_000_000_000), (12, 0, 5_999, 5),
        (40, 0, .max, 0),
        (127, 0, .max, 0), (0x80, 0, 5, 5_000_000_000), (0x80 | 10, 0, 1024, 1_000_000_000), (0x80 | 64, 0, .max, 999_999_999),
        (0xFF, 0, .max, 0), (0, 0, .max, .max), (9, 2, 5, 2_000_000_005), (9, -1, 5, 0), (9, .max, .max, .max),
        (9, .min, .max, 0),
    ]) func everyResolutionBecomesNanosecondsWithoutOverflow(
        _ resolution: UInt8, _ offset: Int64, _ stamp: UInt64, _ expected: UInt64
    ) {
        #expect(TimeScale(resolution: resolution, offset: offset).nanoseconds(stamp) == expected)
    }

    @Test func aFileCutAnywhereKeepsTheRowsBeforeTheCut() throws {
        let octets = try Sample.octets()
        let whole = try Trace(octets: octets)
        let ends = blockEnds(octets)
        for length in 1..<octets.count {
            let trace = try Trace(octets: [UInt8](octets[..<length]))
            let blocks = ends.filter { $0 <= length }.count
            let isAtBlock = ends.contains(length)
            #expect(trace.rows == [TraceRow](whole.rows.prefix(max(0, blocks - 8))), "cut at \(length)")
            #expect((trace.damage == nil) == isAtBlock, "cut at \(length)")
            if let damage = trace.damage {
                #expect(damage.kind == .cutShort, "cut at \(length)")
                #expect(damage.block == blocks + 1)
                #expect(damage.offset == UInt64(blocks == 0 ? 0 : ends[blocks - 1]))
                #expect(damage.present == UInt64(length) - damage.offset)
                #expect(damage.rows == trace.rows.count)
            }
        }
    }

    @Test func aLengthThatLiesIsDamageNotACut() throws {
        var octets = try Sample.octets()
        let ends = blockEnds(octets)
        // The third row claims more than is left, although its packet and options end where they did.
        octets[ends[9] + 4] = 0
        octets[ends[9] + 5] = 1
        let trace = try Trace(octets: octets)
        #expect(trace.damage?.kind == .damaged)
        #expect(trace.damage?.block == 11)
        #expect(trace.damage?.offset == UInt64(ends[9]))
        #expect(trace.rows == numbered([TraceRow](Sample.rows.prefix(2))))
    }

    @Test func aBlockOverSixteenMebibytesIsDamageWithBothNumbers() throws {
        var octets = try Sample.octets()
        let start = blockEnds(octets)[9]
        octets.replaceSubrange(start + 4..<start + 8, with: [0xFC, 0xFF, 0xFF, 0xFF])
        let damage = try #require(try Trace(octets: octets).damage)
        let left = octets.count - start
        #expect(damage.kind == .damaged)
        #expect(damage.said == 0xFFFF_FFFC)
        #expect(damage.present == UInt64(left))
        #expect(damage.detail == "its length, 4,294,967,292 bytes, does not fit the \(left) that follow")
    }

    @Test func lengthsThatDisagreeAreDamage() throws {
        var octets = try Sample.octets()
        octets[blockEnds(octets)[9] - 4] ^= 4
        let damage = try #require(try Trace(octets: octets).damage)
        #expect(damage.kind == .damaged)
        #expect(damage.block == 10)
        #expect(damage.rows == 1)
    }

    @Test func aPacketOfAnUndeclaredInterfaceIsDamage() throws {
        var octets = try Sample.octets()
        octets[blockEnds(octets)[8] + 8] = 4
        let damage = try #require(try Trace(octets: octets).damage)
        #expect(damage.kind == .damaged)
        #expect(damage.block == 10)
        #expect(damage.detail == "its interface is 4, 4 are declared")
    }

    @Test(
        arguments: [
            ([0xFF, 0xD8, 0xFF, 0xE1], "JPEG"), ([0x50, 0x4B, 0x03, 0x04], "ZIP"), ([0xD4, 0xC3, 0xB2, 0xA1], "classic pcap"),
            ([0x68, 0x65, 0x6C, 0x6C], "text"), ([0x0A, 0x0A, 0x0D, 0x0A], "pcapng that a text-mode copy spoiled"),
            ([0x00, 0x01, 0x02, 0x03], nil),
        ] as [([UInt8], String?)]) func aFileThatIsNoCaptureIsNamed(_ head: [UInt8], _ guess: String?) throws
    {
        do throws(TraceFileError) {
            _ = try Trace(octets: head)
            Issue.record("it was read")
        } catch {
            #expect(error.code == .notACapture(firstBytes: head, guess: guess))
        }
    }

    @Test func whatCannotBeOpenedHasACodeOfItsOwn() throws {
        let folder = try Folder()
        let empty = try folder.write([], "empty.pcapng")
        let jpeg = try folder.write([0xFF, 0xD8, 0xFF, 0xE1, 0, 0], "photo.jpg")
        #expect(throws: TraceFileError(.empty, path: "")) { try Trace.load(path: empty) }
        #expect(throws: TraceFileError(.isDirectory, path: "")) { try Trace.load(path: folder.path) }
        #expect(throws: TraceFileError(.notFound, path: "")) { try Trace.load(path: folder("none.pcapng")) }
        do throws(TraceFileError) { _ = try Trace.load(path: jpeg) } catch {
            #expect(error.description == "\(jpeg) is not a capture: it starts with FFD8FFE1 (JPEG)")
        }
    }

    @Test func aGrowingFileIsReadOn() throws {
        let folder = try Folder()
        let octets = try Sample.octets()
        let ends = blockEnds(octets)
        let cut = ends[10] + 11
        let path = try folder.write([UInt8](octets[..<cut]), "a.pcapng")
        var reader = try TraceReader(path: path)
        var bodies: [[UInt8]] = []
        while let row = reader.nextRow() { bodies.append([UInt8](row.body)) }
        #expect(bodies.count == 3)
        #expect(reader.damage?.kind == .cutShort)
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(octets[cut...]))
        try handle.close()
        reader.resume()
        while let row = reader.nextRow() { bodies.append([UInt8](row.body)) }
        #expect(bodies == Sample.rows.map(\.body))
        #expect(reader.damage == nil)
    }

    @Test func aViewThatIsKeptDoesNotChangeWhenTheReaderGoesOn() throws {
        let folder = try Folder()
        let row = Sample.rows[1]
        let many = (0..<5_000).map { number -> TraceRow in
            var row = row
            row.body = [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
            return row
        }
        try Trace(header: Sample.header, interfaces: Sample.interfaces, rows: many).write(to: folder("a.pcapng"))
        var reader = try TraceReader(path: folder("a.pcapng"))
        var kept: [RowView] = []
        while let view = reader.nextRow() {
            if view.frame % 500 == 1 { kept.append(view) }
        }
        #expect(kept.map { [UInt8]($0.body) } == stride(from: 0, to: 5_000, by: 500).map { many[$0].body })
    }

    @Test(
        .enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence)),
        arguments: [
            ("ng-147-rawapdu", 34), ("ng-252-cb-only", 37), ("ng-252-dsb-only", 36), ("ng-252-notag", 34), ("ng-252-rich", 39),
            ("ng-2if-same252-diffsnap", 70), ("ng-2if-same252-snap0", 70), ("ng-2if-same252", 70), ("ng-mixed-252-264", 72),
            ("octrace-v1", 37),
        ]
    ) func samplesOfOthersReadWholeAndWithWiresharksLastNumber(_ name: String, _ frames: Int) throws {
        let path = try #require(SharedData.folder).appendingPathComponent("specs/trace-samples/\(name).pcapng").path
        var reader = try TraceReader(path: path)
        while reader.nextRow() != nil {}
        #expect(reader.damage == nil)
        // The figures are tshark 4.0.17's row counts.
        #expect(reader.frameCount == frames)
    }
}

/// Where each block of a little-endian file ends.
func blockEnds(_ octets: [UInt8]) -> [Int] {
    var ends: [Int] = []
    var place = 0
    while place + 8 <= octets.count {
        let length = (0..<4).reduce(0) { $0 | Int(octets[place + 4 + $1]) << (8 * $1) }
        guard length >= 12, place + length <= octets.count else { break }
        place += length
        ends.append(place)
    }
    return ends
}

func littleEndian(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) } }

/// A little-endian block of any type.
func block(_ type: UInt32, _ content: [UInt8]) -> [UInt8] {
    let length = littleEndian(UInt32(content.count + 12))
    return littleEndian(type) + length + content + length
}

/// A file of ours with every number of pcapng turned to the other byte order.
func swapByteOrder(_ octets: [UInt8]) -> [UInt8] {
    var swapped = octets
    func swap(_ place: Int, _ count: Int) { swapped[place..<place + count].reverse() }
    func options(_ start: Int, _ end: Int, numbers: [Int: Int]) {
        var place = start
        while place + 4 <= end {
            let code = Int(octets[place]) | Int(octets[place + 1]) << 8
            let length = Int(octets[place + 2]) | Int(octets[place + 3]) << 8
            swap(place, 2)
            swap(place + 2, 2)
            if let size = numbers[code], size == length { swap(place + 4, size) }
            place += 4 + length + (-length & 3)
        }
    }
    var start = 0
    for end in blockEnds(octets) {
        let type = octets[start]
        swap(start, 4)
        swap(start + 4, 4)
        swap(end - 4, 4)
        func number(_ place: Int) -> Int { (0..<4).reduce(0) { $0 | Int(octets[place + $1]) << (8 * $1) } }
        switch type {
        case 0x0A where octets[start + 1] == 0x0D:
            for (place, count) in [(8, 4), (12, 2), (14, 2), (16, 8)] { swap(start + place, count) }
            options(start + 24, end - 4, numbers: [:])
        case 1:
            for (place, count) in [(8, 2), (10, 2), (12, 4)] { swap(start + place, count) }
            options(start + 16, end - 4, numbers: [14: 8])
        case 6:
            for place in [8, 12, 16, 20, 24] { swap(start + place, 4) }
            let length = number(start + 20)
            options(start + 28 + length + (-length & 3), end - 4, numbers: [2: 4, 5: 8])
        default:
            swap(start + 8, 4)
            swap(start + 12, 4)
        }
        start = end
    }
    return swapped
}

/// `octets` as a gzip member without compression.
func stored(_ octets: ArraySlice<UInt8>) -> [UInt8] {
    var member: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]
    let length = UInt16(truncatingIfNeeded: octets.count)
    member.append(1)
    member += [UInt8(truncatingIfNeeded: length), UInt8(truncatingIfNeeded: length >> 8)]
    member += [UInt8(truncatingIfNeeded: ~length), UInt8(truncatingIfNeeded: ~length >> 8)]
    member += octets
    var sum: UInt32 = 0xFFFF_FFFF
    for octet in octets {
        sum ^= UInt32(octet)
        for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
    }
    return member + littleEndian(~sum) + littleEndian(UInt32(octets.count))
}
