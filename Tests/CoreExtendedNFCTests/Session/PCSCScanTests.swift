// SPDX-License-Identifier: MIT

import CardCrypto
import CardSockets
import Foundation
import Octets
import PCSC
import TestSupport
import Testing

@testable import CoreExtendedNFC

private final class SilentCard: CardEnd, Sendable {
    let atr: [UInt8]
    init(_ atr: [UInt8]) { self.atr = atr }
    func powerOn() {}
    func powerOff() {}
    func exchange(_ command: [UInt8]) -> CardAnswer { .response([0x6D, 0x00]) }
}

@Suite struct ATRIdentificationTests {
    // PC/SC part 3, 3.1.3.2.3: SS and NN; answers as pcsc-tools' list has them.
    @Test(arguments: [
        ("3B8F8001804F0CA000000306030001000000006A", CardType.mifareClassic1K),
        ("3B8F8001804F0CA0000003060300030000000068", .mifareUltralight),
        ("3B8F8001804F0CA00000030611003B0000000042", .felicaStandard),
        ("3B8F8001804F0CA0000003060B00140000000077", .iso15693_generic),
        ("3B8180018080", .mifareDesfire),
        ("3B80800101", .smartMX),
        ("3B800181", .smartMX),
    ])
    func theAnswerToResetGivesTheCoarseType(_ text: String, _ type: CardType) throws {
        let info = CardInfo(atr: ATR(try Hex.decode(text)), uid: Data([0x01]))
        #expect(info.type == type)
        #expect((info.idm != nil) == (type == .felicaStandard))
    }

    @Test func theManufacturerIsFoundWhicheverWayRoundTheUIDIs() throws {
        let atr = ATR(try Hex.decode("3B8F8001804F0CA0000003060B00140000000077"))
        let uid = try Hex.decode("E0040100 12345678")
        #expect(CardInfo(atr: atr, uid: Data(uid)).icManufacturer == 0x04)
        #expect(CardInfo(atr: atr, uid: Data(uid.reversed())).icManufacturer == 0x04)
        #expect(CardInfo(atr: atr, uid: Data()).icManufacturer == nil)
    }

    @Test func cardsWithContactsFitOnlyAll() throws {
        let contact = ATR(try Hex.decode("3B800181"))
        #expect(!contact.fits([.iso14443, .iso15693, .iso18092]))
        #expect(contact.fits([.all]))
        let typeA = ATR(try Hex.decode("3B80800101"))
        #expect(typeA.fits([.iso14443]))
        #expect(!typeA.fits([.iso15693]))
    }
}

@Suite(.enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)))
struct PCSCScanTests {
    /// The card of the test before may still show: pcscd looks 2.5 times a second.
    private func waitForEmptySlots() async throws {
        let context = try await PCSCContext.open()
        for _ in 0..<500 where try await context.readerStatuses().contains(where: \.hasCard) {
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    @Test func aScanTakesTheFirstCardThatFitsItsTargets() async throws {
        try await PrivatePCSCD.use { service in
            try await waitForEmptySlots()
            let contact = VPCDLink(card: SilentCard([0x3B, 0x80, 0x01, 0x81]), port: service.ports[0])
            let passport = VPCDLink(
                card: SilentCard([0x3B, 0x80, 0x80, 0x01, 0x01]), port: service.ports[1],
                options: VPCDLink.Options(identifier: [0x08, 0x01, 0x02, 0x03])
            )
            try contact.start()
            defer { contact.stop() }
            let manager = NFCSessionManager(timeout: .seconds(20))
            let scan = Task { try await manager.scan(for: [.iso14443]) }
            try await Task.sleep(for: .milliseconds(600))
            try passport.start()
            defer { passport.stop() }
            let (info, transport) = try await scan.value
            #expect((transport as? any CardConnection)?.readerName == service.readers[1])
            #expect(info.type == .smartMX)
            #expect(Array(info.uid) == [0x08, 0x01, 0x02, 0x03])
            manager.invalidate()
            await #expect(throws: (any Error).self) {
                try await transport.sendAPDU(CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0, le: 8))
            }
        }
    }

    @Test func aScanWithoutACardTimesOut() async throws {
        try await PrivatePCSCD.use { service in
            try await waitForEmptySlots()
            let manager = NFCSessionManager(reader: service.readers[1], timeout: .milliseconds(100))
            await #expect(throws: NFCError.sessionTimeout) { try await manager.scan(for: [.iso15693]) }
            let unknown = NFCSessionManager(reader: "no such reader")
            await #expect(throws: NFCError.nfcNotAvailable) { try await unknown.scan() }
        }
    }

    @Test func aPendingScanOfTheReadersCanBeEnded() async throws {
        try await PrivatePCSCD.use { _ in
            try await waitForEmptySlots()
            let manager = NFCSessionManager(timeout: nil)
            let scan = Task { try await manager.scan(for: [.iso15693]) }
            try await Task.sleep(for: .milliseconds(150))
            manager.invalidate()
            await #expect(throws: NFCError.sessionInvalidatedByCaller) { try await scan.value }
            let cancelled = Task { try await manager.scan(for: [.iso15693]) }
            try await Task.sleep(for: .milliseconds(150))
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
        }
    }

    @Test func aScanReachesNoReaderWhereReadersAreForbidden() async throws {
        await CardEnvironment.with(CardEnvironment(readersAllowed: false)) {
            let error = await #expect(throws: TransportError.self) { try await NFCSessionManager().scan() }
            #expect(error?.case == .readersForbidden)
        }
    }
}
