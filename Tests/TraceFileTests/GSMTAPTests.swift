// SPDX-License-Identifier: MIT

import CPcap
import Foundation
import Octets
import TestSupport
import Testing

@testable import TraceFile

@Suite struct GSMTAPTests {
    private func imported(_ octets: [UInt8]) throws -> ImportedTrace { try GSMTAPImporter.importTrace(octets, name: "x.pcap") }

    private static let read = "00B0000002AABB9000"

    @Test(arguments: [0, 1, 12, 14, 101, 108, 113, 228, 276] as [UInt16]) func everyLinkTypeGivesTheSameExchange(
        _ linkType: UInt16
    ) throws {
        let packet = Captured.ip4(Captured.udp(try Captured.gsmtap(Self.read)), options: [1, 1, 1, 0])
        let capture = Captured.classic([Captured.frame(packet, linkType: linkType)], linkType: linkType)
        #expect(exchanges(try imported(capture).trace) == ["00B0000002>AABB9000"])
    }

    @Test(arguments: [0, 1, 101, 108, 113, 229, 276] as [UInt16]) func everyLinkTypeCarriesIPVersion6(_ linkType: UInt16) throws {
        let packet = Captured.ip6(Captured.udp(try Captured.gsmtap(Self.read)))
        let capture = Captured.classic([Captured.frame(packet, linkType: linkType)], linkType: linkType)
        #expect(exchanges(try imported(capture).trace) == ["00B0000002>AABB9000"])
    }

    @Test func vlanTagsAreSteppedOver() throws {
        let frame = Captured.tagged(Captured.ip4(Captured.udp(try Captured.gsmtap(Self.read))))
        #expect(exchanges(try imported(Captured.classic([frame])).trace) == ["00B0000002>AABB9000"])
    }

    @Test(arguments: [(false, false), (true, false), (false, true), (true, true)]) func bothByteOrdersAndBothClocksAreRead(
        _ isBigEndian: Bool, _ isNano: Bool
    ) throws {
        let frames = [Captured.frame(Captured.ip4(Captured.udp(try Captured.gsmtap(Self.read))), linkType: 1)]
        let octets = Captured.classic(frames + frames, isBigEndian: isBigEndian, isNano: isNano)
        let rows = try imported(octets).trace.rows.filter { $0.interface == 0 }
        let fraction: UInt64 = isNano ? 123_456 : 123_456_000
        #expect(rows.map(\.time) == [0, 0, 1, 1].map { ($0 + 1_000_000_000) * 1_000_000_000 + fraction })
        #expect(rows.map(\.packetID) == [3, 3, 4, 4])
        #expect(rows.map(\.direction) == [.sent, .received, .sent, .received])
    }

    @Test func theSameCaptureAsPcapngGivesTheSameRows() throws {
        let packet = Captured.ip4(Captured.udp(try Captured.gsmtap(Self.read)))
        let frame = Captured.frame(packet, linkType: 113)
        let folder = try Folder()
        var writer = try TraceWriter(
            creating: folder("a.pcapng"), header: TraceHeader(format: nil, session: nil),
            interfaces: [TraceInterface(.other("any"), linkType: 113)]
        )
        try writer.write(
            TraceRow(time: 1_000_000_000_123_456_000, interface: 0, direction: nil, packetID: nil, dissector: "", body: frame)
        )
        try writer.close()
        let one = try imported(try folder.octets("a.pcapng")).trace
        #expect(one.rows == (try imported(Captured.classic([frame], linkType: 113)).trace.rows))
    }

    @Test func aCompressedCaptureIsOpened() throws {
        let folder = try Folder()
        let path = try folder.write(stored(try Captured.exchanges(Self.read)[...]), "x.pcap.gz")
        #expect(exchanges(try GSMTAPImporter.importFile(path).trace) == ["00B0000002>AABB9000"])
    }

    /// Field report C19: sub-type 1 is an ATR although it looks like a command.
    @Test func anATRIsAConnectAndALaterOneAReset() throws {
        let atr = "3B9F96801F878031E073FE211B674A4C753034054BA9"
        let packets = try [Captured.gsmtap(atr, subType: 1), Captured.gsmtap(Self.read), Captured.gsmtap(atr)]
        let trace = try imported(Captured.classic(packets.map { Captured.frame(Captured.ip4(Captured.udp($0)), linkType: 1) }))
            .trace
        let octets = try Hex.decode(atr)
        let events = trace.rows.filter { $0.interface == 1 && $0.dissector == "json" }.compactMap { MetaRow(body: $0.body) }
        // The third came without its sub-type, as the first SIMtrace sent it.
        #expect(events == ["connect", "reset"].map { .reader(MetaRow.Reader(name: $0, atr: octets)) })
        #expect(exchanges(trace) == [">\(atr)", "00B0000002>AABB9000", ">\(atr)"])
    }

    @Test(arguments: [
        // ISO/IEC 7816-3 8.2, field reports D1 and D5, simtrace's own sample.
        ("3B8480010111200336", true), ("3B84800101112003369000", false), ("3BFD1300008131FE158073C021C057597562694B657940", true),
        ("3B991800118822334455667760", true), ("3B00", true), ("3F", false), ("3B80", false), ("3C00", false), ("3B028080", true),
    ]) func anATRIsKnownByItsOwnLengths(_ text: String, _ isOne: Bool) throws {
        #expect(GSMTAPPacket.isATR(([0xEE] + (try Hex.decode(text)))[1...]) == isOne)
    }

    @Test func whatIsPassedOverIsCountedAndSaid() throws {
        let good = try Captured.gsmtap(Self.read)
        var cut = Captured.frame(Captured.ip4(Captured.udp(good)), linkType: 101)
        cut.removeLast(3)
        let frames: [[UInt8]] = [
            Captured.ip4(Captured.udp(good)), Captured.ip4(Captured.udp(good, from: 50_001)), cut,
            Captured.ip4(Captured.udp(try Captured.gsmtap("00", version: 3))),
            Captured.ip4(Captured.udp(try Captured.gsmtap("00", type: 1))),
            Captured.ip4(Captured.udp(try Captured.gsmtap("00", subType: 9))), Captured.ip4(Captured.udp([2, 4, 4])),
            Captured.ip4(Captured.udp(good), place: 0x2000), Captured.ip4(Captured.udp(good, to: 53)), [0x45],
            Captured.ip4(Captured.udp(try Captured.gsmtap("9000"))),
            Captured.ip4(Captured.udp(try Captured.gsmtap("FF1094", subType: 2))),
            Captured.ip4(Captured.udp(try Captured.gsmtap("B058000002AABB9000"))),
        ]
        let found = try imported(Captured.classic(frames, linkType: 101))
        #expect(
            found.summary == [
                "imported from GSMTAP capture x.pcap: 3 exchanges, 1 PPS or TPDU piece",
                "lost: the time between a command and its answer, both have that of their packet",
                "passed over: 1 packet of GSMTAP version 3, version 2 is read", "passed over: 1 GSMTAP packet of the radio side",
                "passed over: 1 packet of SIM sub-type 9, which is not known",
                "passed over: 1 packet to port 4729 without a GSMTAP header",
                "passed over: 1 packet that the capture did not keep whole",
                "passed over: 1 packet sent in IP fragments, which are not put together",
                "passed over: 2 packets of other traffic",
                "1 command fits two readings and nothing tells which: taken as data to the card",
                "1 packet fits no command with an answer: kept as data",
                "the packets came from 2 senders, that may be as many cards",
            ])
        let marks = found.trace.rows.filter { $0.interface == 2 }.compactMap { MetaRow(body: $0.body) }
        #expect(marks == found.summary.map { .mark(MetaRow.Mark(text: $0)) })
        let data = found.trace.rows.filter { $0.dissector == "data" }
        #expect(data.map(\.protocolText) == ["GSMTAP SIM", "PPS"])
        #expect(data.map(\.body) == [[0x90, 0x00], [0xFF, 0x10, 0x94]])
    }

    @Test func aCaptureWithoutASIMIsRefusedWithWhatItHolds() throws {
        let capture = Captured.classic([Captured.ip4(Captured.udp(try Captured.gsmtap("00", version: 3)))], linkType: 101)
        do throws(TraceFileError) {
            _ = try GSMTAPImporter.importTrace(capture, name: "x.pcap")
            Issue.record("imported")
        } catch {
            #expect(error.code == .nothingToImport)
            #expect(
                error.description
                    == "nothing to import in x.pcap: no GSMTAP packet of a SIM on UDP port 4729; passed over: 1 packet of GSMTAP version 3, version 2 is read"
            )
        }
    }

    @Test func whatIsNoCaptureIsRefusedWithItsFirstOctets() {
        #expect(throws: TraceFileError(.empty, path: "")) { try imported([]) }
        #expect(throws: TraceFileError(.notACapture(firstBytes: [0x23, 0x20, 0x41, 0x54], guess: "text"), path: "")) {
            try imported([UInt8]("# ATR: 3B00\n".utf8))
        }
        #expect(
            throws: TraceFileError(
                .notACapture(firstBytes: [0xD4, 0xC3, 0xB2, 0xA1], guess: "classic pcap, cut off in its header"), path: "")
        ) {
            try imported([0xD4, 0xC3, 0xB2, 0xA1, 2, 0])
        }
    }

    @Test func aCaptureCutAnywhereKeepsItsWholePackets() throws {
        let octets = try Captured.exchanges(Self.read, "00A40000023F009000", "002000010063C3")
        let ends = [24 + 16 + 73, 24 + 2 * (16 + 73), octets.count - 0]
        for length in 25..<octets.count {
            let whole = ends.filter { $0 <= length }.count
            guard whole > 0 else {
                #expect(throws: TraceFileError(.nothingToImport, path: "")) { try imported([UInt8](octets[..<length])) }
                continue
            }
            let cut = try imported([UInt8](octets[..<length]))
            #expect(exchanges(cut.trace).count == whole)
            #expect(cut.damage.map { $0.kind == .cutShort && $0.offset == UInt64(ends[whole - 1]) } ?? ends.contains(length))
        }
    }

    @Test func aPacketThatLiesAboutItsLengthIsDamage() throws {
        var octets = try Captured.exchanges(Self.read, Self.read)
        octets[24 + 16 + 73 + 8 + 3] = 0x7F
        let damage = try #require(try imported(octets).damage)
        #expect(damage.kind == .damaged && damage.offset == 113)
        #expect(damage.description.hasPrefix("damaged in record 2, at byte 113: its length, 2,130,706,5"))
    }

    /// libpcap as the judge of what a classic capture holds.
    @Test func libpcapReadsTheSamePackets() throws {
        let folder = try Folder()
        let frames = try [Self.read, "002000010063C3"].map {
            Captured.frame(Captured.ip4(Captured.udp(try Captured.gsmtap($0))), linkType: 1)
        }
        var files: [String] = []
        for form in 0..<4 {
            let octets = Captured.classic(frames, isBigEndian: form & 1 != 0, isNano: form & 2 != 0)
            files.append(try folder.write(octets, "\(form).pcap"))
        }
        if let samples = SharedData.folder?.appendingPathComponent("specs/trace-samples").path {
            let names = try FileManager.default.contentsOfDirectory(atPath: samples)
            files += names.filter { $0.hasSuffix(".pcap") }.map { "\(samples)/\($0)" }
        }
        for file in files {
            var capture = try ClassicCapture([UInt8](try Data(contentsOf: URL(fileURLWithPath: file))), path: file)
            var reason = [CChar](repeating: 0, count: 256)
            let judge = try #require(
                pcap_open_offline_with_tstamp_precision(file, UInt32(PCAP_TSTAMP_PRECISION_NANO), &reason))
            defer { pcap_close(judge) }
            // In memory libpcap calls raw IP 12, in files 101.
            #expect(pcap_datalink(judge) == (capture.linkType == 101 ? 12 : Int32(capture.linkType)), "\(file)")
            var header: UnsafeMutablePointer<pcap_pkthdr>?
            var octets: UnsafePointer<UInt8>?
            while pcap_next_ex(judge, &header, &octets) == 1 {
                let stamp = try #require(header).pointee
                let next = capture.next()
                let packet = try #require(next)
                #expect(packet.time == UInt64(stamp.ts.tv_sec) * 1_000_000_000 + UInt64(stamp.ts.tv_usec))
                #expect(packet.octets.elementsEqual(UnsafeBufferPointer(start: octets, count: Int(stamp.caplen))))
            }
            let more = capture.next()
            #expect(more == nil && capture.damage == nil)
        }
    }

    @Test func mutatedCapturesEndInRowsOrInDamage() throws {
        var seeds = [
            try Captured.exchanges(
                Self.read, "00A40000023F009000", "3B00", "00B00000000200" + String(repeating: "5A", count: 512) + "9000"),
            Captured.classic(
                [Captured.frame(Captured.ip6(Captured.udp(try Captured.gsmtap(Self.read))), linkType: 276)], linkType: 276),
        ]
        if let folder = SharedData.folder {
            for file in ["specs/trace-samples/gsmtap-sim.pcap", "data/" + GSMTAPCaptureTests.pySim] {
                let data = try Data(contentsOf: folder.appendingPathComponent(file))
                seeds.append([UInt8](data.prefix(8_000)))
            }
        }
        var random = SplitMix(state: 0x6572)
        for count in 0..<HostileInputTests.mutations {
            let octets = random.mutate(seeds[count % seeds.count])
            guard let found = try? imported(octets) else { continue }
            let body = found.trace.rows.filter { $0.interface == 0 }.reduce(0) { $0 + $1.body.count }
            #expect(body <= octets.count)
            #expect(found.trace.rows.count <= octets.count / 10 + found.summary.count)
            #expect(zip(found.trace.rows, 1...).allSatisfy { $0.frame == $1 })
        }
    }
}

/// Captures of others. What their commands are was counted from the packets' octets with another program.
@Suite(.enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence)))
struct GSMTAPCaptureTests {
    static let pySim = "osmocom__pysim/tests/pySim-trace_test/pySim-trace_test_gsmtap.pcapng"

    private func imported(_ file: String) throws -> ImportedTrace {
        try GSMTAPImporter.importFile(try #require(SharedData.folder).appendingPathComponent(file).path)
    }

    @Test func pySimsCaptureOfAPhoneIsSplitWithoutAGuess() throws {
        let found = try imported("data/\(Self.pySim)")
        #expect(found.summary.count == 2)
        #expect(found.summary[0].hasSuffix(": 932 exchanges, 25 ATRs"))
        #expect(found.damage == nil)
        let rows = found.trace.rows.filter { $0.interface == 0 }
        #expect(rows.first?.time == 1_689_929_999_922_593_878)
        var counts: [UInt8: Int] = [:]
        for (command, answer) in zip(rows, rows.dropFirst()) where command.direction == .sent {
            try #require(answer.packetID == command.packetID)
            let (ins, p3) = (command.body[1], Int(command.body[4]))
            counts[ins, default: 0] += 1
            switch ins {
            // ETSI TS 102 221 table 10.5: data to the card.
            case 0x10, 0xA2, 0xA4, 0xD6, 0xDC:
                #expect(command.body.count == 5 + p3 && answer.body.count == 2)
            // PINs without data: the number of tries.
            case 0x20, 0x2C: #expect(command.body.count == 5 && answer.body.count == 2)
            default: #expect(command.body.count == 5 && (answer.body.count == p3 + 2 || answer.body.count == 2))
            }
        }
        #expect(
            counts == [
                0x10: 25, 0x20: 4, 0x2C: 4, 0x70: 49, 0xA2: 20, 0xA4: 378, 0xB0: 66, 0xB2: 95, 0xC0: 275, 0xD6: 3, 0xDC: 2,
                0xF2: 11,
            ])
    }

    @Test func theSampleOfEveryCaseIsSplit() throws {
        let found = try imported("specs/trace-samples/gsmtap-sim.pcap")
        #expect(found.summary.count == 2)
        let lines = exchanges(found.trace)
        #expect(lines.count == 18)
        #expect(lines[0] == "00A4040C07A0000002471001>9000")
        #expect(lines[1] == "00A4040007A000000247100100>6F098407A00000024710019000")
        #expect(lines[2] == "0084000008>4608F919887022129000")
        #expect(lines[3].prefix { $0 != ">" }.count == 2 * (5 + 40 + 1))
        #expect(lines[5] == "0CB000000D9701048E08ED6705417E96BA5500>8709019FF0EC34F9922651990290008E08AD55CC17140B2DED9000")
        #expect(lines[9].hasPrefix("00B00000000200>") && lines[9].count == 15 + 2 * 514)
        #expect(lines[10].hasPrefix("00DA010000012C") && lines[10].hasSuffix(">9000"))
        #expect(lines[12] == "905A00000301000000>9100")
        #expect(lines[13] == "9060000000>0401010100180591AF")
        #expect(lines[17] == ">3B8F8001804F0CA000000306030001000000006A")
    }

    @Test(.enabled(if: Tool.tshark.isPresent, Tool.tshark.absence)) func tsharkPairsEveryAnswerWithItsCommand() throws {
        let folder = try Folder()
        let found = try imported("data/\(Self.pySim)")
        try found.trace.write(to: folder("x.pcapng"))
        let lines = try Tool.tshark.lines(
            "-r", folder("x.pcapng"), "-Y", "iso7816.apdu.sw1", "-T", "fields", "-e", "frame.number", "-e", "iso7816.resp_to",
            "-e",
            "_ws.expert.message"
        )
        #expect(lines.count == 932)
        #expect(
            lines.allSatisfy { line in
                let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
                return fields.count == 3 && Int(fields[0]) == Int(fields[1]).map { $0 + 1 } && fields[2].isEmpty
            })
    }
}
