// SPDX-License-Identifier: MIT

import CardCrypto
import GlobalPlatform
import GrammarLibrary
import GrammarRuntime
import Octets
import Synchronization
import Testing
import VirtualCards

/// What passed between host and element, opened and checked by the grammar, which shares no code with either.
@Suite struct GrammarReadingTests {
    static let cases: [(SecureElementConfiguration.Channel, Int, SecurityLevel)] = [
        (.scp02(option: 0x15), 16, .mac), (.scp02(option: 0x55), 16, .macAndEncryption), (.scp03(option: 0x00), 16, .mac),
        (.scp03(option: 0x10), 24, .macAndEncryption), (.scp03(option: 0x30), 32, [.commandMAC, .responseMAC]),
        (.scp03(option: 0x70), 16, [.commandMAC, .commandEncryption, .responseMAC]), (.scp03(option: 0x60), 24, .all),
        (.scp03(option: 0x70), 32, .all),
    ]

    @Test(arguments: cases.indices, [false, true])
    func everySecuredCommandOfARealSessionIsOpened(_ place: Int, fromStaticKeys: Bool) async throws {
        let (channel, length, level) = Self.cases[place]
        let bench = try Bench { configuration in
            configuration.channel = channel
            let key = SecureElementConfiguration.testKey(length)
            (configuration.encryptionKey, configuration.macKey, configuration.dataKey) = (key, key, key)
        }
        let log = KeyLog()
        try await CardEnvironment.with(CardEnvironment(keySink: log)) {
            let host = try await bench.opened(level, keys: Bench.keys(length))
            try await bench.install(.loyalty, with: host)
            _ = try await host.getStatus(.applications)
            _ = try await host.freeResources()
            try await host.installForPersonalization(SpecimenPackage.loyalty.instanceAID)
            try await host.storeData([TLV.encode(0xDF03, [0, 0, 0, 1])])
            try await host.setStatus(.application, aid: SpecimenPackage.loyalty.instanceAID, state: 0x80)
            try await host.delete(SpecimenPackage.loyalty.aid, related: true)
        }
        var decoder = Decoder(GrammarLibrary.standard.program)
        if fromStaticKeys {
            for name in ["enc", "mac"] {
                let isKnown = decoder.give("globalPlatform.\(name)", SecureElementConfiguration.testKey(length))
                #expect(isKnown, "\(name)")
            }
        } else {
            for (name, octets) in log.keys.withLock({ $0 }) {
                let isKnown = decoder.give(name, octets)
                #expect(isKnown, "\(name)")
            }
        }
        let command = try #require(decoder.program.entry(named: "iso7816.Command"))
        let response = try #require(decoder.program.entry(named: "iso7816.Response"))
        var names: [String] = []
        var held = 0
        let exchanges = bench.wire.exchanges.withLock { $0 }
        for (number, exchange) in exchanges.enumerated() {
            let sent = decoder.push(request: exchange.command, entry: command, exchange: number + 1)
            for annotation in decoder.annotations[sent.annotations] {
                if annotation.code == .held { held += 1 }
                #expect(annotation.severity == .note, "\(Hex.encode(exchange.command)): \(decoder.text(of: annotation))")
            }
            let came = decoder.push(response: exchange.answer, entry: response, exchange: number + 1)
            for annotation in decoder.annotations[came.annotations] {
                if annotation.code == .held { held += 1 }
                #expect(annotation.severity == .note, "\(Hex.encode(exchange.answer)): \(decoder.text(of: annotation))")
            }
            if let found = sent.exchange.flatMap({ decoder.exchangeName($0)?.name }), names.last != found { names.append(found) }
        }
        #expect(
            names == [
                "SELECT", "GP_INITIALIZE_UPDATE", "GP_EXTERNAL_AUTHENTICATE", "GP_INSTALL_LOAD", "GP_LOAD", "GP_INSTALL",
                "GP_GET_STATUS", "GP_GET_DATA", "GP_INSTALL", "GP_STORE_DATA", "GP_SET_STATUS", "GP_DELETE",
            ])
        // Three at the beginning, then one for each command, and one for each answer where the level protects it.
        let secured = exchanges.count - 3
        #expect(held == 3 + secured * (level.contains(.responseMAC) ? 2 : 1))
    }
}
