// SPDX-License-Identifier: MIT

import CardSockets
import Octets
import TestSupport
import Testing

@testable import PCSC

@Suite struct ReaderSurveyTests {
    private func atr(_ text: String) throws -> ATR { ATR(try Hex.decode(text)) }
    private let picc = "ACS ACR1252 Dual Reader [ACR1252 Dual Reader PICC] 00 00"
    private let sam = "ACS ACR1252 Dual Reader [ACR1252 Dual Reader SAM] 01 00"

    @Test func theLinesTellReaderCardAndSlot() throws {
        let survey = ReaderSurvey(readers: [
            .init(
                index: 0, name: picc, flags: .present, atr: try atr("3B8180018080"), askedName: "DESFire EV2 4k",
                escapeCommands: false
            ),
            .init(
                index: 1, name: sam, flags: [.present, .inUse],
                atr: try atr("3BDF18FF81F1FE43003F03834D494641524520506C75732053414D3B"), escapeCommands: false
            ),
            .init(index: 2, name: "Virtual PCD 00 00", flags: .empty),
        ])
        #expect(
            survey.lines == [
                "0  ACS ACR1252 Dual Reader [ACR1252 Dual Reader PICC] 00 00",
                "     card    3B8180018080   DESFire EV2 4k, ISO 14443-4 type A",
                "     slot    contactless; no frames below APDUs (escape commands are off)",
                "1  ACS ACR1252 Dual Reader [ACR1252 Dual Reader SAM] 01 00",
                "     card    3BDF18FF81F1FE43003F03834D494641524520506C75732053414D3B",
                "             \"MIFARE Plus SAM\" in its historical bytes; TCK right",
                "     slot    contact; in use by another program, not asked",
                "2  Virtual PCD 00 00",
                "     empty",
            ]
        )
    }

    @Test func whatIsWrongWithACardIsSaid() throws {
        let wrong = ReaderSurvey.Entry(index: 0, name: "Gem 00 00", flags: [.present, .exclusive], atr: try atr("3B800182"))
        #expect(
            wrong.lines == [
                "0  Gem 00 00", "     card    3B800182   TCK wrong, 81 expected",
                "     slot    contact; held by another program alone, not asked",
            ]
        )
        let mute = ReaderSurvey.Entry(index: 1, name: "Gem 00 01", flags: [.present, .mute])
        #expect(mute.lines == ["1  Gem 00 01", "     card    does not answer to a reset"])
        let text = ReaderSurvey.Entry(index: 2, name: "Virtual PCD 00 00", flags: .present, atr: try atr("3539323435313530"))
        #expect(
            text.lines == [
                "2  Virtual PCD 00 00",
                "     card    3539323435313530",
                "             TS is 35, not 3B or 3F; this is hexadecimal or decimal text, not bytes",
                "     slot    virtual",
            ]
        )
    }

    @Test(arguments: [
        ("ACS ACR122U PICC Interface 00 00", ReaderSurvey.SlotKind.contactless),
        ("HID Global OMNIKEY 5422CL Smartcard Reader [OMNIKEY 5422CL Smartcard Reader] 00 00", .contactless),
        ("Identiv uTrust 4701 F Dual Interface Reader [uTrust 4701 F CL Reader] 00 00", .contactless),
        ("ACS ACR1252 Dual Reader [ACR1252 Dual Reader SAM] 01 00", .contact),
        ("Generic EMV Smartcard Reader 00 00", .unknown),
        ("Virtual PCD 00 01", .virtual),
    ])
    func theSlotsKindIsGuessedFromTheName(_ name: String, _ kind: ReaderSurvey.SlotKind) {
        #expect(ReaderSurvey.SlotKind.guess(from: name) == kind)
    }

    // NXP AN12343 and MF2DL(H)x0: the hardware octets of GetVersion.
    @Test func theHardwareOctetsNameTheGeneration() throws {
        #expect(CardProbe.desfireName(hardware: try Hex.decode("04010112001805 91AF")) == "DESFire EV2 4k")
        #expect(CardProbe.desfireName(hardware: try Hex.decode("04010133001A05 91AF")) == "DESFire EV3 8k")
        #expect(CardProbe.desfireName(hardware: try Hex.decode("04040230001105 91AF")) == "NTAG 424 DNA")
        #expect(CardProbe.desfireName(hardware: [0x6D, 0x00]) == nil)
    }

    @Test func aReaderIsFoundByNumberOrPartOfItsName() {
        let statuses = [picc, sam].map { ReaderStatus(reader: $0, flags: .empty) }
        #expect(ReaderChoice("picc", among: statuses) == .reader(picc))
        #expect(ReaderChoice("1", among: statuses) == .reader(sam))
        #expect(ReaderChoice(sam, among: statuses) == .reader(sam))
        #expect(ReaderChoice("omnikey", among: statuses) == .none)
        #expect(ReaderChoice("7", among: statuses) == .none)
        #expect(ReaderChoice("acr1252", among: statuses) == .several([0, 1]))
        #expect(ReaderChoice(nil, among: statuses) == .reader(picc))
        #expect(ReaderChoice(nil, among: []) == .none)
        let withCard = [statuses[0], ReaderStatus(reader: sam, flags: .present)]
        #expect(ReaderChoice(nil, among: withCard) == .reader(sam))
    }

    @Test func aChoiceThatFailsSaysWhatToType() {
        let command = "tapdeck record passport"
        #expect(
            ReaderChoice.none.lines(wanted: "omnikey", among: [picc, sam], command: command) == [
                "no reader has \"omnikey\" in its name", "0  \(picc)", "1  \(sam)",
                "a number or a part of the name will do: --reader picc",
            ]
        )
        #expect(
            ReaderChoice.several([0, 1]).lines(wanted: "acr1252", among: [picc, sam], command: command) == [
                "\"acr1252\" fits two readers: 0 (... PICC] 00 00) and 1 (... SAM] 01 00)", "tapdeck record passport --reader 0",
            ]
        )
    }

    @Test(.enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)))
    func onlyACardThatNobodyUsesIsAsked() async throws {
        try await PrivatePCSCD.use { service in
            let card = TestCard(atr: TestCard.contactlessATR)
            try await service.waitUntil(1, hasCard: false)
            try await service.withCard(card) { _ in
                let asked = try await ReaderSurvey.gather(probe: true)
                #expect(asked.readers.map(\.cardName) == ["passport (eMRTD)", nil])
                #expect(card.commands.count == 1)
                let context = try await PCSCContext.open()
                let connection = try await context.connect(to: service.readers[0])
                let used = try await ReaderSurvey.gather(probe: true)
                #expect(used.readers[0].isInUse)
                #expect(used.readers[0].cardName == nil)
                try await connection.disconnect()
                _ = try await ReaderSurvey.gather(probe: false)
                #expect(card.commands.count == 1)
            }
        }
    }
}
