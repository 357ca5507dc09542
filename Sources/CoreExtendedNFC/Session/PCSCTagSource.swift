// SPDX-License-Identifier: MIT

import FoundationEssentials
import PCSC
import TagTransport

/// The tags in the PC/SC readers of this machine.
struct PCSCTagSource: Sendable {
    let reader: String?
    let timeout: Duration?

    /// The first tag that fits: one that is there already, or the next that comes.
    func discoverTag(for targets: Set<NFCSessionManager.PollingTarget>) async throws -> DiscoveredTag {
        let context = try await PCSCContext.open()
        let readers = try await context.readers()
        guard reader.map({ readers.contains($0) }) ?? !readers.isEmpty else { throw NFCError.nfcNotAvailable }
        guard let timeout else { return try await firstTag(for: targets, context) }
        return try await withThrowingTaskGroup(of: DiscoveredTag.self) { group in
            group.addTask { try await firstTag(for: targets, context) }
            group.addTask {
                try await Task.sleep(for: timeout)
                throw NFCError.sessionTimeout
            }
            defer { group.cancelAll() }
            guard let tag = try await group.next() else { throw NFCError.sessionTimeout }
            return tag
        }
    }

    private func firstTag(
        for targets: Set<NFCSessionManager.PollingTarget>, _ context: PCSCContext
    ) async throws -> DiscoveredTag {
        for await event in try context.readerEvents() {
            switch event {
            case .cardInserted(let name, let octets) where reader == nil || reader == name:
                guard ATR(octets).fits(targets), let tag = try await connect(context, name) else { continue }
                return tag
            case .failed(let error): throw error.transportError
            default: continue
            }
        }
        throw CancellationError()
    }

    /// Nil when the card was gone before it could be reached.
    private func connect(_ context: PCSCContext, _ reader: String) async throws(TransportError) -> DiscoveredTag? {
        let transport: PCSCTransport
        do throws(TransportError) {
            transport = try await PCSCTransport.connect(context, to: reader)
        } catch {
            if error.case == .tagConnectionLost { return nil }
            throw error
        }
        let info = CardInfo(atr: ATR(Array(transport.atr)), uid: transport.identifier)
        return DiscoveredTag(info: info, transport: transport) { transport.card.close() }
    }
}

extension ATR {
    /// A card with contacts is none of the three technologies; only *all* means it.
    func fits(_ targets: Set<NFCSessionManager.PollingTarget>) -> Bool {
        if targets.contains(.all) { return true }
        return switch technology {
        case .iso14443A, .iso14443B: targets.contains(.iso14443)
        case .felica: targets.contains(.iso18092)
        case .iso15693: targets.contains(.iso15693)
        case .contact, .otherContactless: false
        }
    }
}

extension CardInfo {
    /// What an answer to reset and a UID tell (PC/SC part 3, 3.1.3.2.3). NTAG cannot be told from MIFARE Ultralight here.
    init(atr: ATR, uid: Data) {
        self.init(type: atr.coarseType, uid: uid)
        switch atr.technology {
        case .felica: idm = uid.isEmpty ? atr.felicaIdentifier.map { Data($0) } : uid
        case .iso15693:
            // The UID begins with E0 and the manufacturer's code; some readers give it the other way round.
            let octets = Array(uid)
            if octets.count == 8, octets[0] == 0xE0 {
                icManufacturer = Int(octets[1])
            } else if octets.count == 8, octets[7] == 0xE0 {
                icManufacturer = Int(octets[6])
            }
        default: if atr.takesCommandAPDUs { historicalBytes = Data(atr.historicalBytes) }
        }
        if self.uid.isEmpty, let idm { self.uid = idm }
    }
}

extension ATR {
    fileprivate var coarseType: CardType {
        guard let card = storageCard else {
            if felicaIdentifier != nil { return .felicaStandard }
            return looksLikeDESFire ? .mifareDesfire : .smartMX
        }
        switch card.name {
        case 0x0001: return .mifareClassic1K
        case 0x0002: return .mifareClassic4K
        case 0x0026: return .mifareMini
        case 0x002F, 0x0030, 0xF004: return .jewelTopaz
        case 0x0036: return .mifarePlusSL1_2K
        case 0x0037: return .mifarePlusSL1_4K
        case 0x0038: return .mifarePlusSL2_2K
        case 0x0039: return .mifarePlusSL2_4K
        case 0x003A: return .mifareUltralightC
        case 0xFF00...0xFFFF: return .unknown(atqa: Data(), sak: UInt8(truncatingIfNeeded: card.name))
        default: break
        }
        return switch card.technology {
        case .iso14443A: .mifareUltralight
        case .iso14443B: .iso14443B_generic
        case .felica: .felicaStandard
        case .iso15693: .iso15693_generic
        case .contact, .otherContactless: .unknown(atqa: Data(), sak: 0)
        }
    }
}
