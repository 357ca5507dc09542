// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Flows
import Foundation
import Testing
import VirtualCards

@Suite struct FlowTableTests {
    @Test func everyFlowIsFoundByItsNameAndNamesAreUnique() {
        #expect(FlowTable.all.map(\.name) == ["passport", "apdu", "desfire", "ntag424", "ndef", "credential"])
        for flow in FlowTable.all { #expect(FlowTable.named(flow.name)?.function == flow.function) }
        #expect(FlowTable.named("nothing") == nil)
    }

    @Test func theOutcomeIsCanonicalJSON() async throws {
        let flow = try #require(FlowTable.named("apdu"))
        let card = ListedCard(["00A4040000": "6F009000"])
        let text = try await flow.run(argumentsJSON: #"{"unknown":[1],"script":"00A4040000"}"#, over: card)
        #expect(text == #"{"answers":["6F009000"]}"#)
    }

    @Test(arguments: ["", "[]", "{}", #"{"script":5}"#, #"{"script":"00"#])
    func argumentsThatCannotBeReadAreRefusedBeforeAnythingIsSent(text: String) async throws {
        let flow = try #require(FlowTable.named("apdu"))
        let card = ListedCard([:])
        await #expect(throws: FlowArgumentError.self) { try await flow.run(argumentsJSON: text, over: card) }
        #expect(card.log.isEmpty)
    }

    @Test func secretsAreNamedByTheirKeysAndUnreadableArgumentsAreAllSecret() throws {
        let passport = try #require(FlowTable.named("passport"))
        #expect(passport.secretArguments(ofJSON: #"{"mrzKey":"L898902C<369080619406236"}"#) == ["mrzKey"])
        #expect(passport.secretArguments(ofJSON: #"{"can":"123456"}"#) == ["can"])
        #expect(
            passport.secretArguments(ofJSON: #"{"pin":"1234","terminalKey":"00","terminalCertificates":["7F21"]}"#)
                == ["pin", "terminalKey"])
        #expect(passport.secretArguments(ofJSON: #"{"mrzKey":7,"dataGroups":["dg1"]}"#) == ["mrzKey", "dataGroups"])
        #expect(passport.secretArguments(ofJSON: "nothing").isEmpty)
    }

    @Test func argumentsOfThePassportFlowHaveDefaultsAndNames() throws {
        let decoded = try JSONDecoder().decode(
            PassportFlow.Arguments.self, from: Data(#"{"mrzKey":"K","dataGroups":["sod","dg1"]}"#.utf8))
        #expect(decoded == PassportFlow.Arguments(access: .mrz("K"), dataGroups: [.sod, .dg1]))
        #expect(decoded.performActiveAuth)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(PassportFlow.Arguments.self, from: Data(#"{"mrzKey":"K","dataGroups":["dg17"]}"#.utf8))
        }
    }
}

@Suite struct FlowFailureTests {
    struct Other: Error { let code = Kind.strange(7) }
    enum Kind { case strange(Int) }
    enum Bare: Error { case odd }

    @Test(arguments: [
        (
            NFCError.tagConnectionLost as any Error & Sendable, "NFCError", "tagConnectionLost", nil as String?,
            FaultSide.outside, Int32(3)
        ),
        (NFCError.bacFailed("x"), "NFCError", "bacFailed", nil, .card, 1),
        (NFCError.unexpectedStatusWord(0x69, 0x82), "NFCError", "unexpectedStatusWord", "6982", .card, 1),
        (NFCError.sessionTimeout, "NFCError", "sessionTimeout", nil, .card, 3),
        (NFCError.userCanceled, "NFCError", "userCanceled", nil, .outside, 130),
        (NFCError.nfcNotAvailable, "NFCError", "nfcNotAvailable", nil, .outside, 3),
        (TransportError(.tagConnectionLost, code: 0x8010_0069), "PCSC", "tagConnectionLost", "80100069", .outside, 3),
        (TransportError(.timeout), "PCSC", "timeout", nil, .card, 3),
        (CancellationError(), "Cancellation", "cancelled", nil, .program, 130),
        (Other(), "Other", "strange", nil, .program, 1),
        (Bare.odd, "Bare", "odd", nil, .program, 1),
    ])
    func anErrorIsWrittenDownWithItsSideAndStatus(
        error: any Error & Sendable, domain: String, name: String, code: String?, blame: FaultSide, status: Int32
    ) {
        let failure = FlowFailure.describe(error)
        #expect(failure.domain == domain)
        #expect(failure.case == name)
        #expect(failure.code == code)
        #expect(failure.blame == blame)
        #expect(failure.exitStatus == status)
    }

    @Test func scriptFaultsAreUsageAndMismatchesAreTheCards() throws {
        let fault = #expect(throws: APDUScriptError.self) { try APDUScript("zz") }
        #expect(FlowFailure.describe(try #require(fault)).exitStatus == 2)
    }

    @Test func aFailureSurvivesJSONWithoutItsNil() throws {
        let failure = FlowFailure.describe(NFCError.tagLocked)
        let text = String(decoding: try JSONEncoder().encode(failure), as: UTF8.self)
        #expect(!text.contains("null") && !text.contains("code"))
        #expect(try JSONDecoder().decode(FlowFailure.self, from: Data(text.utf8)) == failure)
    }
}

@Suite struct PassportFlowTests {
    private func card() throws -> VirtualCardTransport {
        VirtualCardTransport(try VirtualCardCatalog.make(try VirtualCardSpecification(reference: "virtual:passport")))
    }

    @Test func equalReadsGiveEqualText() async throws {
        let flow = try #require(FlowTable.named("passport"))
        let arguments = """
            {"mrzKey":"L898902C<369080619406236","dataGroups":["com","sod","dg1"],"performActiveAuth":true,"trustAnchors":[]}
            """
        let first = try await flow.run(argumentsJSON: arguments, over: try card())
        let second = try await flow.run(argumentsJSON: arguments, over: try card())
        #expect(first == second)
        #expect(!first.contains("null"))
        #expect(first.contains(#""com":"60145F0104303130"#))
        #expect(first.contains(#""dataGroupReadStatus":{"com":"read","dg1":"read","sod":"read"}"#))
        let model = try JSONSerialization.jsonObject(with: Data(first.utf8)) as? [String: Any]
        #expect((model?["mrz"] as? [String: Any])?["lastName"] as? String == "ERIKSSON")
    }

    @Test func theLibrarysErrorComesThroughUnchanged() async throws {
        let flow = try #require(FlowTable.named("passport"))
        await #expect(throws: NFCError.bacFailed("")) {
            try await flow.run(argumentsJSON: #"{"mrzKey":"L898902C<369080619406230"}"#, over: try card())
        }
    }
}
