// SPDX-License-Identifier: MIT

import FoundationEssentials
public import TagTransport

/// A tag that was found and connected to.
public struct DiscoveredTag: Sendable {
    /// What it is, as far as that can be told without asking it.
    public let info: CardInfo
    public let transport: any NFCTagTransport
    /// Lets go of it, when the session ends. Must not block.
    let close: @Sendable () -> Void

    public init(info: CardInfo, transport: any NFCTagTransport, close: @escaping @Sendable () -> Void = {}) {
        self.info = info
        self.transport = transport
        self.close = close
    }

    /// A tag of which no more is known than its transport tells.
    ///
    /// | transport | type | set |
    /// |---|---|---|
    /// | ISO 7816 | smartMX | uid, initialSelectedAID |
    /// | FeliCa | felicaStandard | uid, idm, systemCode |
    /// | ISO 15693 | iso15693_generic | uid, icManufacturer |
    ///
    /// - Throws: ``NFCError/tagNotSupported`` when it is none of these.
    public init(transport: any NFCTagTransport, close: @escaping @Sendable () -> Void = {}) throws(NFCError) {
        let uid = transport.identifier
        switch transport {
        case let transport as any ISO7816TagTransporting:
            let initial = transport.initialAID
            self.init(
                info: CardInfo(type: .smartMX, uid: uid, initialSelectedAID: initial.isEmpty ? nil : initial),
                transport: transport, close: close
            )
        case let transport as any FeliCaTagTransporting:
            self.init(
                info: CardInfo(type: .felicaStandard, uid: uid, systemCode: transport.systemCode, idm: uid),
                transport: transport, close: close
            )
        case let transport as any ISO15693TagTransporting:
            self.init(
                info: CardInfo(type: .iso15693_generic, uid: uid, icManufacturer: transport.icManufacturerCode),
                transport: transport, close: close
            )
        default: throw .tagNotSupported
        }
    }
}
