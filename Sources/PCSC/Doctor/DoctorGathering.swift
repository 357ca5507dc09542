// SPDX-License-Identifier: MIT

import FoundationEssentials
import Glibc
public import TagTransport

extension DoctorFacts {
    /// Looks at this machine. Nothing is changed; a pcscd that the system starts on demand is started by being asked.
    ///
    /// - Throws: ``TransportError`` `readersForbidden`, and nothing else: what cannot be found is a fact, too.
    public static func gather() async throws(TransportError) -> DoctorFacts {
        try PCSCContext.requireReaders()
        let worker = WorkerThread()
        var facts = await worker.run { MachineLook().facts } ?? DoctorFacts()
        facts.library = await libraryFact(facts.service)
        if facts.library == .works, let context = try? await PCSCContext.open() {
            let statuses = (try? await context.readerStatuses()) ?? []
            facts.readers = statuses.map { ListedReader(name: $0.reader, isExclusive: $0.flags.contains(.exclusive)) }
        }
        return facts
    }

    private static func libraryFact(_ service: Service) async -> Library {
        guard case .success = PCSCLibrary.shared else { return .missing }
        do throws(TransportError) {
            _ = try await PCSCContext.open()
            return .works
        } catch {
            let failure = PCSCError(code: error.code ?? 0x8010_0014)
            // The service answers, and the library still finds none that it can talk to.
            guard case .answers = service, failure.code == 0x8010_001D || failure.code == 0x8010_001E else {
                return .fails(failure)
            }
            return .otherProtocol
        }
    }
}

/// What can be found without PC/SC. `root` stands before every absolute path, so that a test can bring its own machine.
struct MachineLook {
    var root = ""

    var facts: DoctorFacts {
        var facts = DoctorFacts()
        let environment = ProcessInfo.processInfo.environment
        if let path = environment["PCSCLITE_CSOCK_NAME"], !path.isEmpty { facts.socketPath = path }
        facts.service = ServiceCall.ask(facts.socketPath)
        facts.serviceIsInstalled = ["/usr/sbin/pcscd", "/usr/bin/pcscd", "/usr/local/sbin/pcscd"].contains { exists($0) }
        facts.serviceVersion = Self.version(in: outputOfProgram("pcscd -v"), after: "version")
        facts.usbReaders = usbReaders
        facts.driverIsInstalled = exists("/usr/lib/pcsc/drivers/ifd-ccid.bundle")
        facts.escapeCommands = text(facts.driverSettingsPath).flatMap(Self.escapeCommands(in:))
        facts.virtualSlots = virtualSlots
        facts.user = environment["SUDO_USER"] ?? environment["USER"] ?? ""
        let folder = FileManager.default.currentDirectoryPath
        if access(folder, W_OK) != 0 { facts.unwritableFolder = folder }
        let tshark = outputOfProgram("command -v tshark")
        facts.wireshark =
            tshark.isEmpty
            ? .missing : .version(Self.version(in: outputOfProgram("tshark --version"), after: "(Wireshark)") ?? "")
        return facts
    }

    // MARK: - USB

    /// Modules of the kernel's own NFC stack that take readers away from pcscd.
    private static let takers: Set<String> = ["pn533_usb", "pn533", "port100", "nfcmrvl_usb"]

    /// Readers whose own product text is poor or that show no smart-card interface.
    private static let names: [UInt32: String] = [
        0x04E6_5591: "SCL3711", 0x04E6_5790: "uTrust 3700 F", 0x054C_06C1: "RC-S380", 0x054C_06C3: "RC-S380",
        0x054C_0DC8: "RC-S300", 0x054C_0DC9: "RC-S300", 0x054C_02E1: "RC-S330", 0x04CC_0531: "PN531", 0x04CC_2533: "PN533",
        0x072F_2200: "ACR122U", 0x072F_2214: "ACR1222", 0x072F_223B: "ACR1252U", 0x072F_2303: "ACR1552U",
    ]

    /// The readers on USB: devices of a known number, or with an interface of class 0B (smart card).
    var usbReaders: [DoctorFacts.USBReader] {
        let folder = "/sys/bus/usb/devices"
        let entries = list(folder).sorted()
        return entries.compactMap { device in
            guard !device.contains(":"), let vendor = hexadecimal("\(folder)/\(device)/idVendor"),
                let product = hexadecimal("\(folder)/\(device)/idProduct")
            else { return nil }
            let interfaces = entries.filter { $0.hasPrefix("\(device):") }.map { "\(folder)/\($0)" }
            let drivers = interfaces.compactMap { link("\($0)/driver") }
            let known = Self.names[UInt32(vendor) << 16 | UInt32(product)]
            let isReader = known != nil || interfaces.contains { hexadecimal("\($0)/bInterfaceClass") == 0x0B }
            let taker = drivers.first { Self.takers.contains($0) }
            guard isReader || taker != nil else { return nil }
            let name = known ?? text("\(folder)/\(device)/product").map(Self.plain) ?? ""
            return DoctorFacts.USBReader(vendor: vendor, product: product, name: name, heldBy: taker)
        }
    }

    // MARK: - Settings

    /// Whether `ifdDriverOptions` of the generic driver has its lowest bit set: escape commands; nil when it is not there.
    static func escapeCommands(in settings: String) -> Bool? {
        guard let key = settings.firstRange(of: "<key>ifdDriverOptions</key>") else { return nil }
        let rest = settings[key.upperBound...].prefix(200)
        guard let open = rest.firstRange(of: "<string>"), let close = rest[open.upperBound...].firstRange(of: "</string>") else {
            return nil
        }
        let value = rest[open.upperBound..<close.lowerBound].lowercased()
        let number = value.hasPrefix("0x") ? Int(value.dropFirst(2), radix: 16) : Int(value)
        return number.map { $0 & 1 == 1 }
    }

    /// The slots of the virtual reader, by pcscd's configuration and the ports that are open.
    var virtualSlots: [DoctorFacts.VirtualSlot] {
        let folder = "/etc/reader.conf.d"
        guard let port = list(folder).sorted().compactMap({ text("\(folder)/\($0)").flatMap(Self.virtualReaderPort(in:)) }).first
        else { return [] }
        let open = Self.listeners(in: text("/proc/net/tcp") ?? "").merging(Self.listeners(in: text("/proc/net/tcp6") ?? "")) {
            $0 || $1
        }
        // The driver has two slots, on this port and the next.
        return [port, port &+ 1].map {
            DoctorFacts.VirtualSlot(port: $0, listens: open[$0] != nil, everyAddress: open[$0] ?? false)
        }
    }

    /// The port of an entry for vpcd in pcscd's configuration: its CHANNELID; nil when there is none.
    static func virtualReaderPort(in configuration: String) -> UInt16? {
        var isVirtual = false
        var port: UInt16?
        for line in configuration.split(separator: "\n") {
            let words = line.split { $0 == " " || $0 == "\t" }
            guard words.count >= 2, !words[0].hasPrefix("#") else { continue }
            if words[0] == "LIBPATH" { isVirtual = words[1].contains("libifdvpcd") }
            if words[0] == "CHANNELID" {
                let text = words[1].lowercased()
                port = text.hasPrefix("0x") ? UInt16(text.dropFirst(2), radix: 16) : UInt16(text)
            }
        }
        return isVirtual ? port : nil
    }

    /// The listening ports of `/proc/net/tcp` or `tcp6`, each with whether it listens on every address.
    static func listeners(in table: String) -> [UInt16: Bool] {
        var ports: [UInt16: Bool] = [:]
        for line in table.split(separator: "\n").dropFirst() {
            let words = line.split(separator: " ")
            guard words.count > 3, words[3] == "0A" else { continue }
            let local = words[1].split(separator: ":")
            guard local.count == 2, let port = UInt16(local[1], radix: 16) else { continue }
            ports[port] = (ports[port] ?? false) || local[0].allSatisfy { $0 == "0" }
        }
        return ports
    }

    /// The first word after `mark` that begins with a digit, without what is not part of a version.
    static func version(in output: String, after mark: String) -> String? {
        guard let place = output.firstRange(of: mark) else { return nil }
        let word = output[place.upperBound...].split { $0.isWhitespace }.first { $0.first?.isNumber == true }
        guard let version = word?.prefix(while: { $0.isNumber || $0 == "." }) else { return nil }
        return String(version.last == "." ? version.dropLast() : version)
    }

    // MARK: - Files and programs

    private func list(_ path: String) -> [String] { (try? FileManager.default.contentsOfDirectory(atPath: root + path)) ?? [] }
    private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: root + path) }

    private func text(_ path: String) -> String? {
        (try? Data(contentsOf: URL(filePath: root + path))).map { String(decoding: $0, as: UTF8.self) }
    }

    private func hexadecimal(_ path: String) -> UInt16? {
        text(path).flatMap { UInt16($0.filter { !$0.isWhitespace }, radix: 16) }
    }

    private func link(_ path: String) -> String? {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: root + path))?.split(separator: "/").last.map(String.init)
    }

    /// A product's text comes from the device: printable ASCII, at most 40 characters.
    private static func plain(_ text: String) -> String {
        let kept = text.unicodeScalars.filter { (0x20...0x7E).contains($0.value) }.prefix(40)
        var plain = String(String.UnicodeScalarView(kept))
        while plain.last == " " { plain.removeLast() }
        return plain
    }

    /// What a program prints; empty when it is not there. System folders are searched, too: users' PATHs lack sbin.
    private func outputOfProgram(_ command: String) -> String {
        guard let stream = popen("PATH=\"$PATH:/usr/sbin:/sbin\"; \(command) 2>/dev/null", "r") else { return "" }
        defer { pclose(stream) }
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while output.count < 1 << 16 {
            let count = fread(&buffer, 1, buffer.count, stream)
            if count == 0 { break }
            output += buffer.prefix(count)
        }
        return String(decoding: output, as: UTF8.self)
    }
}
