// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import TagTransport
import TestSupport
import Testing

@testable import PCSC

@Suite struct DoctorGatheringTests {
    @Test func theLowestBitOfTheDriversOptionsIsEscapeCommands() {
        func settings(_ value: String) -> String {
            "<dict>\n<key>ifdDriverOptions</key>\n\t<string>\(value)</string>\n<key>x</key>"
        }
        #expect(MachineLook.escapeCommands(in: settings("0x0000")) == false)
        #expect(MachineLook.escapeCommands(in: settings("0x0001")) == true)
        #expect(MachineLook.escapeCommands(in: settings("0x0005")) == true)
        #expect(MachineLook.escapeCommands(in: settings("4")) == false)
        #expect(MachineLook.escapeCommands(in: settings("")) == nil)
        #expect(MachineLook.escapeCommands(in: "<dict></dict>") == nil)
    }

    @Test func theVirtualReadersPortIsItsChannel() {
        let entry =
            "FRIENDLYNAME \"Virtual PCD\"\nDEVICENAME   /dev/null:0x8C7B\nLIBPATH      /usr/lib/pcsc/drivers/serial/libifdvpcd.so\nCHANNELID    0x8C7B\n"
        #expect(MachineLook.virtualReaderPort(in: entry) == 35_963)
        #expect(MachineLook.virtualReaderPort(in: entry.replacingOccurrences(of: "libifdvpcd", with: "libccidtwin")) == nil)
        #expect(MachineLook.virtualReaderPort(in: "#LIBPATH libifdvpcd\n#CHANNELID 1") == nil)
    }

    @Test func listeningPortsAreToldFromConnections() {
        let table = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
               0: 00000000:8C7B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0
               1: 0100007F:8C7C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0
               2: 0100007F:0016 0100007F:1234 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0
            """
        #expect(MachineLook.listeners(in: table) == [0x8C7B: true, 0x8C7C: false])
    }

    @Test func versionsAreFoundInWhatProgramsPrint() {
        #expect(MachineLook.version(in: "pcsc-lite version 1.9.9.\nCopyright (C) 1999-2002", after: "version") == "1.9.9")
        #expect(MachineLook.version(in: "TShark (Wireshark) 4.0.17 (Git v4.0.17)", after: "(Wireshark)") == "4.0.17")
        #expect(MachineLook.version(in: "", after: "version") == nil)
    }

    @Test func aReaderOnUSBIsFoundWithTheModuleThatHoldsIt() throws {
        let root = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent("usb-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        func write(_ path: String, _ text: String) throws {
            let url = root.appendingPathComponent(path)
            try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: url)
        }
        let devices = "sys/bus/usb/devices"
        try write("\(devices)/1-1/idVendor", "072f\n")
        try write("\(devices)/1-1/idProduct", "2200\n")
        try write("\(devices)/1-1:1.0/bInterfaceClass", "0b\n")
        try FileManager.default.createSymbolicLink(
            atPath: root.appendingPathComponent("\(devices)/1-1:1.0/driver").path,
            withDestinationPath: "../../../bus/usb/drivers/pn533_usb"
        )
        try write("\(devices)/1-2/idVendor", "1234\n")
        try write("\(devices)/1-2/idProduct", "5678\n")
        try write("\(devices)/1-2/product", "Card\u{1B}[31m Reader\n")
        try write("\(devices)/1-2:1.0/bInterfaceClass", "0b\n")
        try write("\(devices)/1-3/idVendor", "046d\n")
        try write("\(devices)/1-3/idProduct", "c31c\n")
        try write("\(devices)/1-3:1.0/bInterfaceClass", "03\n")
        #expect(
            MachineLook(root: root.path).usbReaders == [
                DoctorFacts.USBReader(vendor: 0x072F, product: 0x2200, name: "ACR122U", heldBy: "pn533_usb"),
                DoctorFacts.USBReader(vendor: 0x1234, product: 0x5678, name: "Card[31m Reader"),
            ]
        )
    }

    @Test func aSocketThatIsNotThereIsToldFromOneThatNobodyServes() throws {
        let path = NSTemporaryDirectory() + "s-\(UUID().uuidString.prefix(8))"
        #expect(ServiceCall.ask(path) == .nothingThere)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(bound == 0)
        #expect(ServiceCall.ask(path) == .nobodyListens)
        close(descriptor)
        unlink(path)
        #expect(ServiceCall.ask(String(repeating: "x", count: 200)) == .garbled)
    }

    @Test(.enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)))
    func aRunningServiceIsFoundWithItsProtocolAndReaders() async throws {
        try await PrivatePCSCD.use { service in
            let facts = try await DoctorFacts.gather()
            #expect(facts.socketPath == service.socketPath)
            #expect(facts.library == .works)
            #expect(facts.readers.map(\.name) == service.readers)
            guard case .answers(let milliseconds, let major, let minor) = facts.service else {
                Issue.record("\(facts.service)")
                return
            }
            #expect(milliseconds < 2_000)
            #expect(major == 4)
            #expect((4...6).contains(minor))
            await CardEnvironment.with(CardEnvironment(readersAllowed: false)) {
                let error = await #expect(throws: TransportError.self) { try await DoctorFacts.gather() }
                #expect(error?.case == .readersForbidden)
            }
        }
    }
}
