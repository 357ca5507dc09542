// SPDX-License-Identifier: MIT

import GrammarLanguage
import GrammarRuntime
import Octets
import Testing

/// Rows of the transition table of credential sessions: the state, what happens, and the state after it.
@Suite struct CredentialSessionTable {
    enum State: String, CaseIterable { case management, wired, cardEmulation, invalid }

    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var from: State
        var event: String
        var error: String?
        var to: State
        var codes: [AnnotationCode]
        var testDescription: String { "\(name): \(event) in \(from)" }

        init(
            _ name: String, _ from: State, _ event: String, throws error: String? = nil, _ to: State,
            _ codes: [AnnotationCode] = []
        ) {
            (self.name, self.from, self.event, self.error, self.to, self.codes) = (name, from, event, error, to, codes)
        }
    }

    static let rows: [Row] = [
        Row("T1", .invalid, "startSession", .management),
        Row("T5", .invalid, "startSession", throws: "accessDenied", .invalid),
        Row("T8", .management, "listCredentials", .management),
        Row("T9", .wired, "listCredentials", throws: "invalidSessionState", .wired, [.illegal]),
        Row("T11", .management, "provisionCredential", throws: "insufficientSpace", .management),
        Row("T12", .cardEmulation, "provisionCredential", throws: "invalidSessionState", .cardEmulation, [.illegal]),
        Row("T14", .wired, "deleteCredential", throws: "invalidSessionState", .wired, [.illegal]),
        Row("T17", .management, "enterWiredMode", .wired),
        Row("T18", .cardEmulation, "enterWiredMode", throws: "invalidCredentialState", .cardEmulation),
        Row("T19", .wired, "enterWiredMode", throws: "resourceUnavailable", .management),
        Row("T20", .cardEmulation, "enterWiredMode", .wired),
        Row("T22", .wired, "transceive", .wired),
        Row("T23", .management, "transceive", throws: "invalidSessionState", .management, [.illegal]),
        Row("T25", .wired, "transceive", throws: "commandNotSupported", .wired),
        Row("T26", .wired, "transceive", throws: "resourceUnavailable", .management),
        Row("T27", .wired, "transceive", throws: "acquiredResourceRelinquished", .management),
        Row("T30", .wired, "endWiredMode", .management),
        Row("T31", .management, "endWiredMode", throws: "invalidSessionState", .management, [.illegal]),
        Row("T33", .cardEmulation, "performWiredTransaction", .wired),
        Row("T34", .wired, "performTransactionInWiredMode", throws: "userCanceledAuthorization", .management),
        Row("T35", .wired, "performTransactionInWiredMode", throws: "accessDenied", .wired),
        Row("T38", .cardEmulation, "performWiredTransaction", throws: "resourceUnavailable", .management),
        Row("T39", .management, "performTransaction", .cardEmulation),
        Row("T40", .wired, "performTransaction", .cardEmulation, [.contested]),
        Row("T41", .cardEmulation, "performTransaction", throws: "invalidSessionState", .cardEmulation, [.illegal]),
        Row("T42", .wired, "performTransaction", throws: "userCanceledAuthorization", .management),
        Row("T42", .management, "performTransaction", throws: "invalidView", .management),
        Row("T43", .wired, "performCardEmulationTransactionWithCurrentCredential", .cardEmulation),
        Row(
            "T44", .management, "performCardEmulationTransactionWithCurrentCredential", throws: "invalidSessionState",
            .management, [.illegal]),
        Row("T45", .wired, "performCardEmulationTransactionWithCurrentCredential", throws: "resourceUnavailable", .management),
        Row("G8", .wired, "performCardEmulationTransactionWithCurrentCredential", throws: "internalError", .wired, [.contested]),
        Row("G8", .wired, "performWiredTransaction", throws: "internalError", .wired, [.contested]),
        Row("T46", .cardEmulation, "endCardEmulation", .management),
        Row("T47", .wired, "endCardEmulation", throws: "invalidSessionState", .wired, [.illegal]),
        Row("T48", .cardEmulation, "endWiredMode", .management, [.contested]),
        Row("T50", .cardEmulation, "fieldStateChanged", .cardEmulation),
        Row("T51", .cardEmulation, "connectivityEvent", .cardEmulation),
        Row("T52", .cardEmulation, "invalidateConfiguration", .management),
        Row("T53", .wired, "transactionEnded", .management),
        Row("T54", .cardEmulation, "invalidate", .invalid),
        Row("T55", .wired, "enteredBackground", .invalid),
        Row("T56", .management, "backendError", .invalid),
        Row("T57", .invalid, "listCredentials", throws: "sessionInvalidated", .invalid, [.illegal]),
        Row("T57", .wired, "listCredentials", throws: "sessionInvalidated", .invalid, [.remark]),
        Row("G3", .invalid, "invalidate", .invalid),
    ]

    @Test(arguments: rows) func aRowLeadsWhereTheTableSays(_ row: Row) {
        var decoder = Decoder(Shipped.set.program)
        let isKnown = decoder.observe(session: "CredentialSession", state: row.from.rawValue)
        #expect(isKnown)
        let outcome = decoder.push(event: row.event, isSuccess: row.error == nil, error: row.error)
        #expect(decoder.sessions.first { $0.name == "CredentialSession" }?.state == row.to.rawValue)
        #expect(decoder.annotations[outcome.annotations].map(\.code) == row.codes)
    }

    @Test func aSecondSessionBesideAnOpenOneIsRemarkedOn() {
        var decoder = Decoder(Shipped.set.program)
        let first = decoder.push(event: "startSession")
        #expect(decoder.annotations[first.annotations].isEmpty)
        let second = decoder.push(event: "startSession")
        #expect(decoder.annotations[second.annotations].map(\.code) == [.remark])
        _ = decoder.push(event: "invalidate")
        let third = decoder.push(event: "startSession")
        #expect(decoder.annotations[third.annotations].isEmpty)
    }

    @Test(arguments: [(Int64(14), AnnotationCode.remark), (15, .contested), (59, .contested)])
    func theLifeOfAnAssertionIsContestedBetweenItsTwoNumbers(_ seconds: Int64, _ code: AnnotationCode) {
        var decoder = Decoder(Shipped.set.program)
        _ = decoder.push(event: "acquirePresentmentAssertion")
        let outcome = decoder.push(event: "presentmentIntentAssertionTimeout", values: ["elapsed": .number(seconds)])
        #expect(decoder.annotations[outcome.annotations].map(\.code) == [code])
        #expect(decoder.sessions.first { $0.name == "PresentmentAssertion" }?.state == "free")
    }

    @Test func anAssertionOfSixtySecondsIsAsThePagesSay() {
        var decoder = Decoder(Shipped.set.program)
        _ = decoder.push(event: "acquirePresentmentAssertion")
        let outcome = decoder.push(event: "presentmentIntentAssertionTimeout", values: ["elapsed": .number(60)])
        #expect(decoder.annotations[outcome.annotations].isEmpty)
    }
}

@Suite struct FilesOfTravelDocuments {
    private static let application = "> 00A4040C07A0000002471001"

    @Test func namesOfFilesCountWhileTheApplicationIsSelected() throws {
        var wire = Wire("iso7816")
        #expect(try wire.push("> 00A4020C02011E").exchange == "SELECT")
        try wire.push("< 6A82")
        try wire.push(Self.application)
        try wire.push("< 9000")
        let inside = try wire.push("> 00A4020C02011E")
        #expect(inside.exchange == "SELECT_FILE")
        #expect(inside.values["iso7816.command.data.file"] == "EF.COM")
        try wire.push("< 9000")
        try wire.push("> 00A4040007A0000000031010")
        try wire.push("< 9000")
        #expect(try wire.push("> 00B0820004").exchange == "READ_BINARY")
    }

    @Test func aShortIdentifierInP1NamesTheFile() throws {
        var wire = Wire("iso7816")
        try wire.push(Self.application)
        try wire.push("< 9000")
        #expect(try wire.push("> 00B0820004").values["iso7816.command.p1"] == "DG2, face")
        try wire.push("< 758201009000")
        #expect(try wire.push("> 00B0000404").values["iso7816.command.p1"] == "0")
    }

    @Test func whoTheDocumentIsAboutIsNotShown() throws {
        var wire = Wire("iso7816")
        try wire.push(Self.application)
        try wire.push("< 9000")
        try wire.push("> 00B081005D")
        let line =
            "503C55544F4552494B53534F4E3C3C414E4E413C4D415249413C3C3C3C3C3C3C3C3C3C3C3C3C3C3C3C3C3C3C"
            + "4C383938393032433336" + "55544F" + "37343038313232" + "46" + "31323034313539" + "5A45313834323236423C3C3C3C3C"
            + "3130"
        let read = try wire.push("< 615B5F1F58\(line)9000")
        #expect(read.values["emrtd.dg1.dg1.mrz.issuer"] == "UTO")
        #expect(read.values["emrtd.dg1.dg1.mrz.number"] == "9 bytes, secret")
        #expect(read.values["emrtd.dg1.dg1.mrz.name"] == "39 bytes, secret")
        #expect(read.values.values.allSatisfy { !$0.contains("4C3839383930324333") && !$0.contains("L898902C") })
    }
}
