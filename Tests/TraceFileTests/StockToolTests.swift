// SPDX-License-Identifier: MIT

import CPcap
import Foundation
import Testing

@testable import TraceFile

@Suite struct StockToolTests {
    private func sample(_ folder: Folder) throws -> String {
        try Sample.write(to: folder("a.pcapng"))
        return folder("a.pcapng")
    }

    @Test(.enabled(if: Tool.editcap.isPresent, Tool.editcap.absence)) func editcapsCopyIsIdentical() throws {
        let folder = try Folder()
        let path = try sample(folder)
        #expect(try Tool.editcap(path, folder("b.pcapng")).status == 0)
        #expect(try folder.octets("a.pcapng") == folder.octets("b.pcapng"))
    }

    @Test(.enabled(if: Tool.editcap.isPresent, Tool.editcap.absence)) func editcapsCopyOfALargeRowIsIdentical() throws {
        let folder = try Folder()
        let large = TraceRow(
            time: 7, interface: 3, direction: nil, packetID: 4, dissector: "json", body: [UInt8](repeating: 0x20, count: 500_000)
        )
        try Trace(header: Sample.header, interfaces: Sample.interfaces, rows: [large]).write(to: folder("a.pcapng"))
        #expect(try Tool.editcap(folder("a.pcapng"), folder("b.pcapng")).status == 0)
        #expect(try folder.octets("a.pcapng") == folder.octets("b.pcapng"))
    }

    @Test(.enabled(if: Tool.capinfos.isPresent, Tool.capinfos.absence)) func capinfosCountsTheBlocksOfASideFile() throws {
        let folder = try Folder()
        var writer = try SecretsWriter(creating: folder("a.secrets"), session: Sample.session, application: "tapdeck")
        try writer.write(Sample.secrets)
        try writer.close()
        let (status, output) = try Tool.capinfos(folder("a.secrets"))
        #expect(status == 0)
        #expect(output.contains("tapdeck=1 session=\(Sample.session)"))
        #expect(output.contains("Number of decryption secrets in file: 3"))
    }

    @Test(.enabled(if: Tool.editcap.isPresent, Tool.editcap.absence)) func editcapTakesTheSecretsOut() throws {
        let folder = try Folder()
        let path = try sample(folder)
        #expect(try Tool.editcap("--discard-all-secrets", path, folder("b.pcapng")).status == 0)
        let trace = try Trace.load(path: folder("b.pcapng"))
        #expect(trace.secrets.isEmpty)
        #expect(trace.rows == numbered(Sample.rows))
    }

    @Test(.enabled(if: Tool.capinfos.isPresent, Tool.capinfos.absence)) func capinfosIsContent() throws {
        let folder = try Folder()
        let (status, output) = try Tool.capinfos(try sample(folder))
        #expect(status == 0)
        #expect(output.contains("tapdeck=1 session=\(Sample.session)"))
        #expect(output.contains("Number of packets:   5"))
        #expect(output.contains("Number of decryption secrets in file: 3"))
    }

    @Test(.enabled(if: Tool.tshark.isPresent, Tool.tshark.absence)) func tsharkShowsEveryRowWithOurNumbers() throws {
        let folder = try Folder()
        let path = try sample(folder)
        let lines = try Tool.tshark.lines(
            "-r", path, "-T", "fields", "-E", "separator=|", "-e", "frame.number", "-e", "frame.interface_name", "-e",
            "frame.packet_id",
            "-e", "frame.packet_flags_direction", "-e", "_ws.col.Protocol"
        )
        #expect(
            lines == [
                "1|meta|1||JSON", "2|apdu:0|2|0x00000002|ISO 7816", "3|apdu:0|2|0x00000001|ISO 7816",
                "4|rf:0|3|0x00000002|ISO15693", "5|rf:0|3|0x00000001|",
            ]
        )
    }

    @Test func libpcapReadsAsManyPackets() throws {
        let folder = try Folder()
        #expect(try packets(try sample(folder)) == 5)
    }

    private func packets(_ path: String) throws -> Int {
        var reason = [CChar](repeating: 0, count: Int(PCAP_ERRBUF_SIZE))
        let capture = try #require(pcap_open_offline(path, &reason))
        defer { pcap_close(capture) }
        #expect(pcap_datalink(capture) == 252)
        var header: UnsafeMutablePointer<pcap_pkthdr>?
        var octets: UnsafePointer<UInt8>?
        var count = 0
        while pcap_next_ex(capture, &header, &octets) == 1 { count += 1 }
        return count
    }
}
