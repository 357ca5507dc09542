// SPDX-License-Identifier: MIT

import CardCrypto
import CardSockets
import CoreExtendedNFC
import Foundation
import PCSC
import TestSupport
import Testing
import VirtualCards

/// PACE through pcscd, the virtual reader and two sockets: the transports that a real reader has.
@Suite(.enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)))
struct PACEReaderTests {
    private static let ways: [(way: String, access: PassportAccess)] = [
        ("dh-gm-3des:0", .mrz(specimenKey)), ("dh-gm-aes128:1", .can("123456")), ("dh-im-aes192:2", .mrz(specimenKey)),
        ("dh-im-aes256:0", .can("123456")), ("ecdh-gm-3des:8", .can("123456")), ("ecdh-gm-aes128:13", .mrz(specimenKey)),
        ("ecdh-gm-aes192:17", .can("123456")), ("ecdh-im-3des:12", .mrz(specimenKey)), ("ecdh-im-aes256:18", .can("123456")),
        ("ecdh-cam-aes128:13", .mrz(specimenKey)), ("ecdh-cam-aes192:15", .can("123456")),
        ("ecdh-cam-aes256:14", .mrz(specimenKey)),
    ]

    /// Runs `body` with a transport to a card in the second slot.
    private func withCard<Value>(
        _ options: String, isolation: isolated (any Actor)? = #isolation, _ body: (PCSCTransport) async throws -> Value
    ) async throws -> Value {
        try await PrivatePCSCD.use { service in
            let context = try await PCSCContext.open()
            try await wait(for: service.readers[1], hasCard: false, context)
            let card = try VirtualCardCatalog.make(try VirtualCardSpecification(reference: "virtual:passport?" + options))
            let link = VPCDLink(
                card: card, port: service.ports[1], options: VPCDLink.Options(identifier: card.identifier))
            try link.start()
            defer { link.stop() }
            try await wait(for: service.readers[1], hasCard: true, context)
            let transport = try await PCSCTransport.connect(context, to: service.readers[1])
            let value = try await body(transport)
            try await transport.card.disconnect()
            return value
        }
    }

    /// pcscd looks 2.5 times a second.
    private func wait(for reader: String, hasCard: Bool, _ context: PCSCContext) async throws {
        for _ in 0..<1_000 {
            if try await context.readerStatuses().contains(where: { $0.reader == reader && $0.hasCard == hasCard }) { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw ProcessRunner.Failure(description: "\(reader): card \(hasCard ? "not seen" : "still there")")
    }

    @Test func theTwelveAreSpreadOverMappingsAgreementsCiphersAndPasswords() {
        let names = Self.ways.map { $0.way.split(separator: ":")[0].split(separator: "-").map(String.init) }
        #expect(Set(Self.ways.map(\.way)).count == 12)
        #expect(Set(names.map { "\($0[0])-\($0[1])" }) == ["dh-gm", "dh-im", "ecdh-gm", "ecdh-im", "ecdh-cam"])
        #expect(Set(names.map { $0[2] }) == Set(PACEMatrix.ciphers))
        #expect(Set(Self.ways.map(\.way)).isSubset(of: PACEMatrix.all))
        #expect(Self.ways.count { $0.access == .can("123456") } == 6)
    }

    @Test(arguments: 0..<12)
    func aWayOpensTheChipThroughAReader(number: Int) async throws {
        let (way, access) = Self.ways[number]
        let model = try await withCard("pace=\(way)") { transport in
            #expect(transport.protocolName == "T=CL")
            return try await CoreExtendedNFC.readPassport(
                transport: transport, access: access, dataGroups: [.com, .sod, .dg1, .dg2])
        }
        #expect(model.securityReport.pace.status == .succeeded)
        #expect(model.securityReport.bac.status == .skipped)
        #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
        #expect(model.mrz?.documentNumber == "L898902C")
        if way.contains("cam") { #expect(model.securityReport.chipAuthentication.status == .succeeded) }
    }

    /// The reset between a failed PACE and Basic Access Control reaches the card, by way of pcscd.
    @Test func afterAFailedPACETheReaderResetsTheCardAndBACFollows() async throws {
        let model = try await withCard("pace=ecdh-gm-aes128:13&quirk=never-pace,sulks") { transport in
            try await CoreExtendedNFC.readPassport(transport: transport, mrzKey: specimenKey, dataGroups: [.com, .dg1])
        }
        #expect(model.securityReport.pace.status == .fallback)
        #expect(model.securityReport.bac.status == .succeeded)
        #expect(model.dataGroupReadStatus == [.com: .read, .dg1: .read])
    }

    @Test func aWrongCANIsRefusedThroughAReaderToo() async throws {
        let error = await #expect(throws: NFCError.self) {
            try await withCard("pace=ecdh-gm-aes128:13") { transport in
                try await CoreExtendedNFC.readPassport(transport: transport, access: .can("654321"), dataGroups: [.dg1])
            }
        }
        #expect(error == .paceFailed(""))
        #expect(error?.description.contains("6300") == true)
    }
}
