// SPDX-License-Identifier: MIT

import TagTransport

/// Asks a contactless card what it is, with commands that change nothing, and resets it afterwards.
///
/// Cards with contacts are not asked: some count, or log, what they are asked.
enum CardProbe {
    /// The name; nil when the card tells nothing, is in use, or is gone.
    static func name(of atr: ATR, in reader: String, _ context: PCSCContext) async -> String? {
        guard atr.isContactless, atr.takesCommandAPDUs else { return nil }
        guard let card = try? await context.connect(to: reader) else { return nil }
        let name = try? await card.withTransaction {
            atr.looksLikeDESFire ? try await desfireName(card) : try await applicationName(card)
        }
        try? await card.disconnect(.reset)
        return name ?? nil
    }

    private static func applicationName(_ card: PCSCCard) async throws -> String? {
        let applications: [(select: [UInt8], name: String)] = [
            // ICAO 9303-10: the LDS application.
            ([0x00, 0xA4, 0x04, 0x0C, 0x07, 0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01], "passport (eMRTD)"),
            // NFC Forum Type 4 Tag 2.0: the NDEF tag application.
            ([0x00, 0xA4, 0x04, 0x00, 0x07, 0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01, 0x00], "NFC Forum Type 4 tag"),
        ]
        for application in applications where try await card.transmit(application.select).suffix(2) == [0x90, 0x00] {
            return application.name
        }
        return nil
    }

    private static func desfireName(_ card: PCSCCard) async throws -> String? {
        // GetVersion, wrapped; the first of three frames tells the hardware.
        desfireName(hardware: try await card.transmit([0x90, 0x60, 0x00, 0x00, 0x00]))
    }

    /// The name from the first frame of GetVersion: vendor, type, subtype, major, minor, storage, protocol, `91AF`.
    static func desfireName(hardware: [UInt8]) -> String? {
        guard hardware.count == 9, hardware.suffix(2) == [0x91, 0xAF], hardware[0] == 0x04 else { return nil }
        // The storage octet holds the exponent of two in its upper seven bits; the lowest says "or a little more".
        let exponent = Int(hardware[5] >> 1)
        let storage = (10..<20).contains(exponent) ? " \(1 << (exponent - 10))k" : ""
        switch (hardware[1], hardware[3]) {
        case (0x01, 0x00): return "DESFire D40" + storage
        case (0x01, 0x01): return "DESFire EV1" + storage
        case (0x01, 0x12), (0x01, 0x22): return "DESFire EV2" + storage
        case (0x01, 0x33): return "DESFire EV3" + storage
        case (0x01, _): return "DESFire" + storage
        case (0x04, _): return "NTAG 424 DNA"
        case (0x08, _): return "DESFire Light"
        default: return nil
        }
    }
}
