// SPDX-License-Identifier: MIT

import GrammarLanguage
import GrammarRuntime
import Octets
import Testing

@Suite struct CredentialSessionEvents {
    private var decoder = Decoder(Shipped.set.program)

    private func state(_ decoder: Decoder) -> String? { decoder.sessions.first { $0.name == "CredentialSession" }?.state }

    @Test func anIllegalCallNamesItselfTheStateAndWhatWasAllowed() throws {
        var decoder = decoder
        _ = decoder.push(event: "enterWiredMode", values: ["call.credential": .octets([0xC1])])
        #expect(state(decoder) == "wired")
        let outcome = decoder.push(event: "listCredentials", isSuccess: false, error: "invalidSessionState")
        let annotation = try #require(decoder.annotations[outcome.annotations].first)
        #expect(annotation.code == .illegal)
        #expect(annotation.blame == .program)
        let text = decoder.text(of: annotation)
        #expect(text.hasPrefix("listCredentials is not allowed in wired; allowed: invalidate, "))
        #expect(text.contains("transceive"))
        #expect(!text.contains("endCardEmulation"))
        #expect(state(decoder) == "wired")
    }

    @Test func whereTheSourcesDisagreeTheStepIsTakenAndMarked() {
        var decoder = decoder
        _ = decoder.push(event: "enterWiredMode")
        let outcome = decoder.push(event: "performTransaction")
        #expect(decoder.annotations[outcome.annotations].map(\.code) == [.contested])
        #expect(state(decoder) == "cardEmulation")
    }

    @Test func aTransceiveIsDecodedAsTheAPDUsThatItCarries() {
        var decoder = decoder
        _ = decoder.push(event: "enterWiredMode")
        let outcome = decoder.push(
            event: "transceive", values: ["call.data": .octets([0x00, 0xA4, 0x04, 0x00]), "return.data": .octets([0x6A, 0x82])])
        let texts = outcome.spans.compactMap { decoder.text(of: $0) }
        #expect(texts.contains("SELECT"))
        #expect(texts.contains("file or application not found"))
    }

    @Test func anEarlyTimeOutIsAWarningAndALateOneIsNot() {
        for (seconds, code) in [(Int64(59), AnnotationCode.failed), (60, .held)] {
            var decoder = decoder
            _ = decoder.push(event: "performTransaction")
            let outcome = decoder.push(event: "cardEmulationTimeout", values: ["elapsed": .number(seconds)])
            #expect(decoder.annotations[outcome.annotations].map(\.code) == [code])
            #expect(state(decoder) == "management")
        }
    }

    @Test func anObservedStateOutranksTheModel() {
        var decoder = decoder
        let isKnown = decoder.observe(session: "CredentialSession", state: "wired")
        #expect(isKnown)
        #expect(state(decoder) == "wired")
        let isOther = decoder.observe(session: "CredentialSession", state: "nowhere")
        #expect(!isOther)
    }

    @Test func goingBackToASnapshotUndoesEverything() {
        var decoder = decoder
        let before = decoder.state
        _ = decoder.push(event: "invalidate")
        #expect(state(decoder) == "invalid")
        decoder.state = before
        #expect(state(decoder) == "management")
    }
}

@Suite struct Exchanges {
    private func push(_ frames: [(String, String)]) throws -> (decoder: Decoder, outcomes: [Decoder.Outcome]) {
        var decoder = Decoder(Shipped.set.program)
        let command = try #require(Shipped.set.program.entry(named: "iso7816.Command"))
        let response = try #require(Shipped.set.program.entry(named: "iso7816.Response"))
        var outcomes: [Decoder.Outcome] = []
        for (number, frame) in frames.enumerated() {
            outcomes.append(decoder.push(request: try Hex.decode(frame.0), entry: command, exchange: number))
            if !frame.1.isEmpty {
                outcomes.append(decoder.push(response: try Hex.decode(frame.1), entry: response, exchange: number))
            }
        }
        return (decoder, outcomes)
    }

    private func value(_ decoder: Decoder, _ path: String) -> String? {
        decoder.spans.indices.last { decoder.path(of: $0) == path && !decoder.isComposite($0) }.map {
            Hex.encode(decoder.octets(of: $0))
        }
    }

    // Public reports on the cases of ISO/IEC 7816-3: 00 and two bytes are an extended Le, never Lc 0; five bytes ending in 00
    // are case 2; a chained read of 256 bytes is short.
    @Test(arguments: [
        ("00B00000001234", "iso7816.command.le", "1234"), ("00B0000000", "iso7816.command.le", "00"),
        ("00D60000 00 0010 0102030405060708090A0B0C0D0E0F10", "iso7816.command.lc", "0010"),
        ("00A40400 00 0002 3F00 0100", "iso7816.command.le", "0100"), ("00B000000000", "iso7816.command.raw", "0000"),
        ("00B00000 000000", "iso7816.command.le", "0000"),
    ])
    func theCaseFollowsFromTheLengthBytes(_ frame: String, _ path: String, _ expected: String) throws {
        let (decoder, _) = try push([(frame, "")])
        #expect(value(decoder, path) == expected)
    }

    @Test func aClassByteHasTheFormThatItsHighBitsSay() throws {
        #expect(try value(push([("0CB0000001", "")]).decoder, "iso7816.command.cla.sm") == "0C")
        #expect(try value(push([("63B0000001", "")]).decoder, "iso7816.command.cla.smFurther") == "63")
        #expect(try value(push([("90B0000001", "")]).decoder, "iso7816.command.cla.form") == "90")
        #expect(try value(push([("FFCA000000", "")]).decoder, "iso7816.command.cla.class") == "FF")
    }

    @Test func getResponseJoinsTheAnswerUnderTheFirstCommand() throws {
        let (decoder, outcomes) = try push([("00A40800045015 4402", "6104"), ("00C0000004", "6F028400 9000")])
        #expect(outcomes.last?.exchange.flatMap { decoder.exchangeName($0)?.name } == "SELECT")
        #expect(decoder.buffers.contains { $0.origin == .gathered })
        #expect(value(decoder, "iso7816.fileControl.fci.dfName.header") == "8400")
    }

    @Test func aPartThatIsNotFollowedByGetResponseIsLost() throws {
        let (decoder, outcomes) = try push([("00A40000023F00", "6104"), ("00B0000001", "AA9000")])
        let last = try #require(outcomes.last)
        #expect(decoder.annotations[last.annotations].map(\.code) == [.lost])
    }

    @Test func aChainOfCommandsIsOneCommand() throws {
        let (decoder, _) = try push([("10DA000002 0102", "9000"), ("00DA000001 03", "9000")])
        #expect(value(decoder, "iso7816.command.data") == "010203")
    }

    @Test func aResponseWithoutARequestIsUnpaired() throws {
        var decoder = Decoder(Shipped.set.program)
        let response = try #require(Shipped.set.program.entry(named: "iso7816.Response"))
        let outcome = decoder.push(response: [0x90, 0x00], entry: response)
        #expect(decoder.annotations[outcome.annotations].map(\.code) == [.unpaired])
    }

    @Test func aPersonalNumberIsNeverInAText() throws {
        let (decoder, _) = try push([("0020000104 31323334", "9000")])
        for span in decoder.spans.indices where decoder.isSecret(span) {
            #expect(decoder.text(of: span) == "4 bytes, secret")
            #expect(decoder.text(of: span, showingSecrets: true) == "31323334")
        }
        #expect(decoder.spans.indices.contains { decoder.isSecret($0) })
    }

    @Test func aFrameThatNobodyCouldSendIsRefusedAndNotKept() throws {
        var decoder = Decoder(Shipped.set.program)
        let command = try #require(Shipped.set.program.entry(named: "iso7816.Command"))
        let outcome = decoder.push(request: [UInt8](repeating: 0, count: (1 << 24) + 1), entry: command)
        #expect(decoder.annotations[outcome.annotations].map(\.code) == [.lost])
        #expect(decoder.buffers.isEmpty)
    }

    @Test func storageOfADecoderStopsGrowing() throws {
        var decoder = Decoder(Shipped.set.program)
        let command = try #require(Shipped.set.program.entry(named: "iso7816.Command"))
        let frame: [UInt8] = [0x00, 0xA4, 0x04, 0x00, 0x02, 0x3F, 0x00]
        for _ in 0..<10 { _ = decoder.push(request: frame, entry: command) }
        let count = decoder.spans.count
        for _ in 0..<1000 { _ = decoder.push(request: frame, entry: command) }
        #expect(decoder.spans.count == count)
        #expect(decoder.buffers.count == 1)
    }
}
