// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import TagTransport
import TraceFile

/// What a transport says of itself, read once when it is wrapped.
struct TransportDescription: Sendable {
    var kind: MetaRow.Transport.Kind
    var readerName = ""
    var protocolName = ""
    var atr: [UInt8] = []
    var identifier: [UInt8]
    var initialAID: String?
    var systemCode: [UInt8]?
    var icManufacturerCode: Int?

    init(_ transport: any NFCTagTransport) {
        switch transport {
        case let card as any ISO7816TagTransporting:
            kind = .iso7816
            initialAID = card.initialAID
        case let card as any FeliCaTagTransporting:
            kind = .felica
            systemCode = Array(card.systemCode)
        case let card as any ISO15693TagTransporting:
            kind = .iso15693
            icManufacturerCode = card.icManufacturerCode
        default:
            kind = .raw
        }
        identifier = Array(transport.identifier)
        if let connection = transport as? any CardConnection {
            readerName = connection.readerName
            protocolName = connection.protocolName
            atr = Array(connection.atr)
        }
    }

    /// Whether raw frames can pass.
    var hasFrames: Bool { kind != .iso7816 }

    func row(id: Int) -> MetaRow.Transport {
        MetaRow.Transport(
            id: id, kind: kind, identifier: identifier, initialAID: initialAID.flatMap { try? Hex.decode($0) },
            systemCode: systemCode,
            icManufacturerCode: icManufacturerCode, atr: atr.isEmpty ? nil : atr
        )
    }
}
