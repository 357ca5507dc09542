// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

extension VirtualCardCatalog {
    static let desfire = VirtualCardKind(
        name: "desfire",
        summary: "a DESFire of any generation with applications and files",
        options: [
            VirtualCardOption("seed", "N", "the seed of the card's random numbers (default 0)"),
            VirtualCardOption("fault", "LIST", "what goes wrong at which command: remove@12"),
            VirtualCardOption("generation", "NAME", "d40, ev1, ev2 or ev3 (default ev2)"),
            VirtualCardOption("layout", "TEXT", "applications, keys and files; ; between statements"),
            VirtualCardOption("uid", "HEX", "seven bytes"),
            VirtualCardOption("delay", "N", "authentications put off from the third failure on"),
            VirtualCardOption("signature", "HEX", "what Read_Sig answers, 56 bytes (default zeros)"),
        ]
    ) { options throws(VirtualCardError) in
        let name = options["generation"] ?? "ev2"
        guard let model = DESFireModel(rawValue: name), model != .ntag424 else {
            throw VirtualCardError(
                .badValue, "--generation takes d40, ev1, ev2 or ev3, not '\(name)'", option: "generation")
        }
        let cipher = DESFireCipher.twoKeyTripleDES
        var memory = DESFireMemory(
            model: model, uid: try octets("uid", 7, options) ?? [0x04, 0x54, 0x44, 0x01, 0x02, 0x03, 0x80],
            card: DESFireApplication(identifier: [0, 0, 0], settings: 0x0F, cipher: cipher, keys: [.zero(cipher)]))
        if let signature = try octets("signature", 56, options) { memory.signature = signature }
        let text = options["layout"] ?? (model == .d40 ? DESFireLayouts.des : DESFireLayouts.aes)
        memory = try DESFireDescription(text, into: memory).memory
        if model == .d40, memory.applications.contains(where: { $0.cipher != .twoKeyTripleDES }) {
            throw VirtualCardError(.badValue, "--layout: a d40 has des and 2k3des keys only", option: "layout")
        }
        return try card("desfire", memory, options)
    }

    static let ntag424 = VirtualCardKind(
        name: "ntag424",
        summary: "an NTAG 424 DNA with its NDEF message, counted and signed",
        options: [
            VirtualCardOption("seed", "N", "the seed of the card's random numbers (default 0)"),
            VirtualCardOption("fault", "LIST", "what goes wrong at which command: remove@12"),
            VirtualCardOption("key", "N=HEX,...", "application keys 0 to 4 (default zeros)"),
            VirtualCardOption("ndef", "HEX", "the NDEF message (default a SUN message)"),
            VirtualCardOption("blank", nil, "as delivered: no message and no mirrors"),
            VirtualCardOption("lrp", nil, "switched to LRP"),
            VirtualCardOption("uid", "HEX", "seven bytes"),
            VirtualCardOption("delay", "N", "authentications put off from the third failure on"),
            VirtualCardOption("signature", "HEX", "what Read_Sig answers, 56 bytes (default zeros)"),
        ]
    ) { options throws(VirtualCardError) in
        var memory = DESFireMemory(
            model: .ntag424, uid: try octets("uid", 7, options) ?? [0x04, 0x54, 0x44, 0x01, 0x02, 0x03, 0x80],
            card: DESFireApplication(identifier: [0, 0, 0], settings: 0x0F, cipher: .aes, keys: [.zero(.aes)]))
        if let signature = try octets("signature", 56, options) { memory.signature = signature }
        memory.usesLRP = options.isOn("lrp")
        var application = DESFireLayouts.ntag424(isBlank: options.isOn("blank"), usesLRP: memory.usesLRP)
        if let message = try octets("ndef", nil, options), var file = application.files[2] {
            guard message.count <= 254 else {
                throw VirtualCardError(.badValue, "--ndef: \(message.count) bytes; 254 fit", option: "ndef")
            }
            let length = [UInt8(truncatingIfNeeded: message.count >> 8), UInt8(truncatingIfNeeded: message.count)]
            file.content = .standard(length + message + [UInt8](repeating: 0, count: 254 - message.count))
            file.messaging = nil
            file.options = 0
            application.files[2] = file
        }
        for item in options.list("key") ?? [] {
            let parts = item.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, let number = Int(parts[0]), (0...4).contains(number),
                let key = try? Hex.decode(parts[1]), key.count == 16
            else { throw VirtualCardError(.badValue, "--key takes 0 to 4, = and 16 bytes, not '\(item)'", option: "key") }
            application.keys[number] = DESFireCardKey(.aes, key)
        }
        memory.applications = [application]
        return try card("ntag424", memory, options)
    }

    private static func card(
        _ kind: String, _ memory: DESFireMemory, _ options: VirtualCardOptions
    ) throws(VirtualCardError) -> VirtualCard {
        var machine = DESFireCardMachine(memory: memory, random: CardRandom(seed: try options.seed(), use: kind))
        machine.delay = Int(try options.number("delay", in: 0...100) ?? 1)
        machine.powerOn()
        return VirtualCard(kind: kind, machine: machine, identifier: memory.uid, faults: try options.faults())
    }

    private static func octets(
        _ name: String, _ count: Int?, _ options: VirtualCardOptions
    ) throws(VirtualCardError) -> [UInt8]? {
        guard let text = options[name] else { return nil }
        guard let octets = try? Hex.decode(text), count == nil || octets.count == count else {
            throw VirtualCardError(
                .badValue, "--\(name) takes \(count.map { "\($0) bytes" } ?? "bytes") in hexadecimal, not '\(text)'", option: name
            )
        }
        return octets
    }
}

/// What is on a card when nobody says.
enum DESFireLayouts {
    private static let files = """
        file 1 std 64 full 1230 = 74617064656B
        file 2 backup 64 mac 1230
        file 3 value 0..10000 100 full 1230 limited
        file 4 linear 16x4 mac 1230
        file 5 cyclic 16x4 full 1230
        file 6 std 32 plain EEEE = 66726565
        """

    /// A file of each kind, and an NDEF application of its own.
    static let aes = """
        app F00001 aes keys 4
        \(files)
        app 000001 aes keys 1 iso E110 name D2760000850101
        file 1 std 15 plain E0E0 iso E103 = 000F20003A00340406E10400FF0000
        file 2 std 255 plain EEE0 iso E104
        """

    static let des = """
        app F00001 des keys 4
        \(files)
        """

    /// NTAG 424 DNA: the application of its NDEF message, files E103, E104, E105.
    static func ntag424(isBlank: Bool, usesLRP: Bool) -> DESFireApplication {
        var application = DESFireApplication(
            identifier: [0, 0, 0], settings: 0x0F, cipher: .aes, keys: Array(repeating: .zero(.aes), count: 5))
        application.name = [0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01]
        application.isoID = 0xE110
        func file(_ id: UInt16, _ options: UInt8, _ rights: UInt16, _ size: Int, _ content: [UInt8]) -> DESFireFile {
            DESFireFile(
                isoID: id, options: options, rights: rights,
                content: .standard(content + [UInt8](repeating: 0, count: max(0, size - content.count))))
        }
        // NT4H2421Gx 8.2.3.2: the second file control TLV names the proprietary file.
        let container: [UInt8] = [
            0x00, 0x17, 0x20, 0x01, 0x00, 0x00, 0xFF, 0x04, 0x06, 0xE1, 0x04, 0x01, 0x00, 0x00, 0x00, 0x05, 0x06, 0xE1, 0x05,
            0x00,
            0x80, 0x82, 0x83,
        ]
        application.files[1] = file(0xE103, 0x00, 0xE000, 32, container)
        application.files[2] = file(0xE104, 0x00, 0xEEE0, 256, [])
        application.files[3] = file(0xE105, 0x03, 0x2330, 128, [])
        if !isBlank { mirror(&application, usesLRP: usesLRP) }
        return application
    }

    /// A URL with enciphered PICC data and a MAC, both of key 0.
    private static func mirror(_ application: inout DESFireApplication, usesLRP: Bool) {
        let places = usesLRP ? 48 : 32
        let prefix = Array("example.com/tag?picc_data=".utf8)
        let middle = Array("&cmac=".utf8)
        let zero = UInt8(ascii: "0")
        let address = prefix + Array(repeating: zero, count: places) + middle + Array(repeating: zero, count: 16)
        let message: [UInt8] = [0xD1, 0x01, UInt8(address.count + 1), 0x55, 0x04] + address
        let picc = 2 + 5 + prefix.count
        let mac = picc + places + middle.count
        let octets: [UInt8] = [
            0xC1, 0xF0, 0x00, UInt8(picc), 0, 0, UInt8(mac), 0, 0, UInt8(mac), 0, 0,
        ]
        guard var file = application.files[2], let messaging = try? NTAGMessaging(octets, counter: 0) else { return }
        file.content = .standard(
            [0x00, UInt8(message.count)] + message + [UInt8](repeating: 0, count: 254 - message.count))
        file.options = 0x40
        file.messaging = messaging
        application.files[2] = file
    }
}
