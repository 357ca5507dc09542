// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Synchronization
import Testing
import VirtualCards

/// The reader side against the card side, which shares no code with it but ciphers and TLV.
@Suite struct VirtualPassportTests {
    private static let mrzKey = "L898902C<369080619406236"

    private func card(_ options: String = "") throws -> VirtualCardTransport {
        VirtualCardTransport(
            try VirtualCardCatalog.make(
                try VirtualCardSpecification(reference: options.isEmpty ? "virtual:passport" : "virtual:passport?\(options)")))
    }

    /// Whatever the terminal draws: the system's random octets, as outside a test.
    @Test func theSpecimenIsReadWhole() async throws {
        let lines = Mutex<[String]>([])
        let model = try await CoreExtendedNFC.readPassport(
            transport: try card(), mrzKey: Self.mrzKey, dataGroups: [.com, .sod, .dg1, .dg2]
        ) { line in lines.withLock { $0.append(line) } }
        #expect(model.dataGroupReadStatus == [.com: .read, .sod: .read, .dg1: .read, .dg2: .read])
        #expect(
            model.mrz?.lines == ["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C<3UTO6908061F9406236ZE184226B<<<<<14"])
        #expect(model.mrz?.checkDigitsHold == true)
        #expect(model.availableDataGroups == [.dg1, .dg2])
        #expect(model.rawDataGroups[.com]?.count == 22)
        #expect(model.faceImageFormat != .unknown)
        #expect(model.problems.isEmpty)
        #expect(lines.withLock { $0.first } == "access  BAC: keys agreed, secure messaging with 3DES")
        // The hashes of EF.SOD are those of the files as they were read.
        let sod = try #require(model.sod)
        for group in [DataGroupId.dg1, .dg2] {
            let digest = try #require(Digest.allCases.first { $0.rawValue == sod.hashName })
            #expect(sod.dataGroupHashes[group] == Data(try digest.hash(Array(try #require(model.rawDataGroups[group])))))
        }
    }

    @Test(arguments: ["chunk=7", "chunk=100", "photo=40000", "strict&photo=33000", "seed=99", "dg=1"])
    func aCardOfAnotherMakeIsReadToo(options: String) async throws {
        let groups: [DataGroupId] = options == "dg=1" ? [.com, .sod, .dg1] : [.com, .sod, .dg1, .dg2]
        let model = try await CoreExtendedNFC.readPassport(transport: try card(options), mrzKey: Self.mrzKey, dataGroups: groups)
        #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
        #expect(model.problems.isEmpty)
        if groups.contains(.dg2) { #expect(model.faceImageData != nil) }
    }

    @Test(arguments: ["L898902C<369080619406230", "T22000129364081251010318"])
    func anotherKeyIsRefused(key: String) async throws {
        let error = await #expect(throws: NFCError.self) {
            try await CoreExtendedNFC.readPassport(transport: try card(), mrzKey: key, dataGroups: [.dg1])
        }
        #expect(error?.description == "the card refused the key: 6300 to EXTERNAL AUTHENTICATE")
    }

    @Test(arguments: 1...18)
    func aRemovalAtAnyCommandIsALostConnection(number: Int) async throws {
        let card = try card("fault=remove@\(number)")
        await #expect(throws: NFCError.tagConnectionLost) {
            try await CoreExtendedNFC.readPassport(transport: card, mrzKey: Self.mrzKey, dataGroups: [.com, .sod, .dg1])
        }
    }

    @Test func manyReadsWithFreshKeysAllSucceed() async throws {
        for seed in 0..<50 {
            let model = try await CoreExtendedNFC.readPassport(
                transport: try card("seed=\(seed)"), mrzKey: Self.mrzKey, dataGroups: [.com, .dg1])
            #expect(model.dataGroupReadStatus == [.com: .read, .dg1: .read])
        }
    }
}

/// A manager whose tag is a virtual card.
private final class VirtualManager: NFCSessionManager, @unchecked Sendable {
    let ended = Mutex<[String?]>([])
    let alerts = Mutex<[String]>([])
    private let tag: any NFCTagTransport
    private let whenAlerted: @Sendable (VirtualManager, String) -> Void

    init(_ tag: any NFCTagTransport, whenAlerted: @escaping @Sendable (VirtualManager, String) -> Void = { _, _ in }) {
        self.tag = tag
        self.whenAlerted = whenAlerted
        super.init(timeout: nil)
    }

    override func discoverTag(for targets: Set<PollingTarget>) async throws -> DiscoveredTag { try DiscoveredTag(transport: tag) }
    override func alertMessageDidChange(_ message: String) {
        alerts.withLock { $0.append(message) }
        whenAlerted(self, message)
    }
    override func sessionDidEnd(errorMessage: String?) { ended.withLock { $0.append(errorMessage) } }
}

@Suite struct PassportSessionTests {
    private func card(_ options: VirtualCardOptions = VirtualCardOptions()) throws -> VirtualCardTransport {
        VirtualCardTransport(try VirtualCardCatalog.make(kind: "passport", options: options))
    }

    @Test func theSessionEndsBeforeTheModelIsReturned() async throws {
        let manager = VirtualManager(try card())
        let model = try await CoreExtendedNFC.readPassport(
            mrzKey: AppendixD.mrzKey, dataGroups: [.com, .dg1], message: "hold it", manager: manager)
        #expect(model.mrz?.lastName == "ERIKSSON")
        #expect(manager.ended.withLock { $0 } == [nil])
        #expect(manager.alerts.withLock { $0 }.contains("read  DG1, 93 bytes"))
    }

    @Test func aFailureIsToldToTheUserOnce() async throws {
        let manager = VirtualManager(try card())
        await #expect(throws: NFCError.bacFailed("")) {
            try await CoreExtendedNFC.readPassport(mrzKey: "L898902C<369080619406230", dataGroups: [.dg1], manager: manager)
        }
        #expect(manager.ended.withLock { $0 } == ["the card refused the key: 6300 to EXTERNAL AUTHENTICATE"])
    }

    /// Whatever failed because the user ended the session is the user's wish, and nothing is shown.
    @Test func aFailureAfterTheUsersCancelIsTheCancel() async throws {
        let manager = VirtualManager(try card(try VirtualCardSpecification(reference: "virtual:passport?fault=remove@7").options))
        { manager, line in
            if line.hasPrefix("access  BAC") { manager.cancelByUser() }
        }
        await #expect(throws: NFCError.userCanceled) {
            try await CoreExtendedNFC.readPassport(
                mrzKey: AppendixD.mrzKey, dataGroups: [.dg1], manager: manager)
        }
        #expect(manager.ended.withLock { $0 } == [nil])
    }
}
