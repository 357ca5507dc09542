// SPDX-License-Identifier: MIT

import Octets

extension VirtualCardCatalog {
    static let secureElement = VirtualCardKind(
        name: "secure-element",
        summary: "a GlobalPlatform secure element that loads and installs",
        options: commonOptions + [
            VirtualCardOption("scp", "N", "02-15, 02-55, or 03- and an option (default 03-70)"),
            VirtualCardOption("key", "HEX", "all three keys (default 404142...4F)"),
            VirtualCardOption("key-bits", "N", "128, 192 or 256 for the default AES key"),
            VirtualCardOption("key-version", "N", "1 to 255 (default 48, 32 for SCP02)"),
            VirtualCardOption("memory", "N", "bytes of memory for contents (default 262144)"),
            VirtualCardOption("store", "DIR", "keeps its contents; else they go with it"),
        ]
    ) { options throws(VirtualCardError) in
        var configuration = SecureElementConfiguration()
        configuration.seed = try options.seed()
        configuration.channel = try channel(options["scp"] ?? "03-70")
        if case .scp02 = configuration.channel { configuration.keyVersion = 0x20 }
        let isAES = if case .scp03 = configuration.channel { true } else { false }
        var key = SecureElementConfiguration.testKey(16)
        if let bits = try options.number("key-bits", in: 128...256) {
            guard bits % 64 == 0, isAES || bits == 128 else {
                throw VirtualCardError(.badValue, "--key-bits takes 128, 192 or 256 for AES, not '\(bits)'", option: "key-bits")
            }
            key = SecureElementConfiguration.testKey(Int(bits) / 8)
        }
        if let text = options["key"] {
            guard let octets = try? Hex.decode(text), (isAES ? [16, 24, 32] : [16]).contains(octets.count) else {
                throw VirtualCardError(
                    .badValue, "--key takes \(isAES ? "16, 24 or 32" : "16") bytes in hexadecimal", option: "key")
            }
            key = octets
        }
        (configuration.encryptionKey, configuration.macKey, configuration.dataKey) = (key, key, key)
        if let version = try options.number("key-version", in: 1...255) {
            configuration.keyVersion = UInt8(truncatingIfNeeded: version)
        }
        if let memory = try options.number("memory", in: 1_024...16_777_216) { configuration.nonVolatileMemory = Int(memory) }
        configuration.storePath = options["store"]
        let faults = try options.faults()
        do throws(SecureElementStoreError) {
            return VirtualCard(kind: "secure-element", machine: try SecureElementMachine(configuration), faults: faults)
        } catch {
            throw VirtualCardError(.badValue, "--store: \(error)", option: "store")
        }
    }

    private static func channel(_ text: String) throws(VirtualCardError) -> SecureElementConfiguration.Channel {
        switch text {
        case "02-15": return .scp02(option: 0x15)
        case "02-55": return .scp02(option: 0x55)
        default:
            let option = text.hasPrefix("03-") ? (try? Hex.decode(text.dropFirst(3))) ?? [] : []
            guard option.count == 1, [0x00, 0x10, 0x20, 0x30, 0x60, 0x70].contains(option[0] & 0xFE) else {
                throw VirtualCardError(
                    .badValue, "--scp takes 02-15, 02-55, 03-00, 03-10, 03-20, 03-30, 03-60, 03-70, not '\(text)'", option: "scp")
            }
            return .scp03(option: option[0])
        }
    }
}
