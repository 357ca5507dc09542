// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Testing
import VirtualCards

@Suite struct DESFireSurveyTests {
    @Test(arguments: DESFireSetting.all) func aSurveyReadsWhatTheKeysOpen(_ setting: DESFireSetting) async throws {
        let transport = try setting.transport()
        var card = try await setting.card(over: transport, key: 3)
        try await card.write(3, Data([1, 2, 3]))
        let survey = try await CoreExtendedNFC.surveyDESFire(
            keys: [1: try setting.key(1)], method: setting.method, transport: transport)
        #expect(survey.version.generation.rawValue == setting.generation)
        #expect((survey.freeMemory == nil) == (setting.generation == "d40"))
        let application = try #require(survey.applications.first)
        #expect(application.identifier == DESFireSetting.application && application.files.count == 15)
        #expect(application.files[2].data?.prefix(3) == Data([1, 2, 3]) && application.files[8].value == 500)
        #expect(application.files.allSatisfy { $0.refusal == nil })
        let blind = try await CoreExtendedNFC.surveyDESFire(transport: transport)
        #expect(blind.applications[0].files.allSatisfy { $0.data == nil && $0.refusal != nil })
        await #expect(throws: NFCError.authenticationFailed) {
            try await CoreExtendedNFC.surveyDESFire(keys: [1: try setting.key(2)], method: setting.method, transport: transport)
        }
        let text = try JSONEncoder().encode(survey)
        #expect(try JSONDecoder().decode(DESFireSurvey.self, from: text) == survey)
    }

    @Test func aRefusedListingIsToldAndTheRestGoesOn() async throws {
        let layout = "app F00001 aes settings 01\nfile 1 std 4 plain EEEE\napp F00002 aes\nfile 1 std 4 plain EEEE = 0102"
        let transport = VirtualCardTransport(
            try VirtualCardCatalog.make(VirtualCardSpecification(kind: "desfire", arguments: ["--layout", layout])))
        let survey = try await CoreExtendedNFC.surveyDESFire(transport: transport)
        #expect(survey.applications.map(\.refusal) == ["authentication error", nil])
        #expect(survey.applications[1].files.first?.data == Data([1, 2, 0, 0]))
    }

    @Test(arguments: [false, true]) func aSurveyOfAnNTAGReadsItsFiles(usesLRP: Bool) async throws {
        let transport = VirtualCardTransport(
            try VirtualCardCatalog.make(
                VirtualCardSpecification(kind: "ntag424", arguments: usesLRP ? ["--lrp"] : [])))
        let survey = try await CoreExtendedNFC.surveyNTAG424(
            keyNumber: 2, key: .zero(.aes), method: usesLRP ? .lrpFirst : .ev2First, transport: transport)
        #expect(survey.uid == transport.identifier && survey.isOriginal == false)
        #expect(survey.files.map { $0.data?.count } == [32, 256, 128])
        let plain = try await CoreExtendedNFC.surveyNTAG424(transport: transport)
        #expect(plain.uid == nil && plain.files[2].refusal == "authentication error")
    }
}
