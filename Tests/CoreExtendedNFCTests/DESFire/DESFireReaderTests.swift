// SPDX-License-Identifier: MIT

import CardCrypto
import CardSockets
import CoreExtendedNFC
import Foundation
import PCSC
import TestSupport
import Testing
import VirtualCards

/// The same commands through a real pcscd: the virtual card in a slot, the library at the reader's end.
@Suite(.enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)))
struct DESFireReaderTests {
    /// The card before may still show: pcscd looks 2.5 times a second.
    private func waitForEmptySlots() async throws {
        let context = try await PCSCContext.open()
        for _ in 0..<500 where try await context.readerStatuses().contains(where: \.hasCard) {
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    @Test func sixCommandsOfEachChannelGoThroughPCSCD() async throws {
        try await PrivatePCSCD.use { service in
            for setting in DESFireSetting.all {
                try await waitForEmptySlots()
                let transport = try setting.transport()
                let link = VPCDLink(
                    card: transport.card, port: service.ports[0],
                    options: VPCDLink.Options(identifier: [UInt8](transport.identifier)))
                try link.start()
                defer { link.stop() }
                let manager = NFCSessionManager(reader: service.readers[0], timeout: .seconds(20))
                let (info, reader) = try await manager.scan(for: [.iso14443])
                #expect(info.type == .mifareDesfire)
                #expect(info.uid == transport.identifier)
                var card = try await setting.card(over: reader, key: 3)
                #expect(try await card.version().generation.rawValue == setting.generation)
                #expect(try await card.fileIDs().count == 15)
                try await card.write(3, Data(repeating: 5, count: 150))
                #expect(try await card.read(3, length: 150) == Data(repeating: 5, count: 150))
                try await card.debit(9, 3)
                try await card.commitTransaction()
                #expect(try await card.value(9) == 497)
                manager.invalidate()
            }
        }
    }
}
