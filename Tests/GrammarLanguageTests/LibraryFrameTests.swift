// SPDX-License-Identifier: MIT

import GrammarLanguage
import GrammarRuntime
import Octets
import Testing

/// One connection, fed with frames in hexadecimal.
struct Wire {
    var decoder = Decoder(Shipped.set.program)
    let grammar: String
    private var number = 0

    init(_ grammar: String) { self.grammar = grammar }

    /// What one frame said.
    struct Reading {
        var exchange: String?
        var values: [String: String] = [:]
        var codes: [AnnotationCode] = []
        var remarks: [String] = []
    }

    @discardableResult
    mutating func push(_ frame: String) throws -> Reading {
        let octets = try Hex.decode(String(frame.dropFirst()))
        let isRequest = frame.hasPrefix(">")
        let name = "\(grammar).\(isRequest ? "Command" : "Response")"
        let entry = try #require(decoder.program.entry(named: name), "\(name)")
        if isRequest { number += 1 }
        let outcome =
            isRequest
            ? decoder.push(request: octets, entry: entry, exchange: number)
            : decoder.push(response: octets, entry: entry, exchange: number)
        return read(outcome)
    }

    /// A frame on the air, given without the four bytes that link type 264 puts before it.
    @discardableResult
    mutating func air(_ frame: String) throws -> Reading {
        let octets = try Hex.decode(String(frame.dropFirst()))
        let event = frame.hasPrefix(">") ? "FE" : "FF"
        let length = Hex.encode([UInt8(octets.count >> 8), UInt8(octets.count & 0xFF)])
        return try push("\(frame.prefix(1)) 00\(event)\(length)\(Hex.encode(octets))")
    }

    private func read(_ outcome: Decoder.Outcome) -> Reading {
        var reading = Reading(exchange: outcome.exchange.flatMap { decoder.exchangeName($0)?.name })
        for span in outcome.spans where !decoder.isComposite(span) {
            reading.values[decoder.path(of: span)] = decoder.text(of: span)
        }
        for annotation in decoder.annotations[outcome.annotations] where annotation.code != .held {
            reading.codes.append(annotation.code)
            reading.remarks.append(decoder.text(of: annotation))
        }
        return reading
    }
}

@Suite struct FramesOfISO14443 {
    @Test func anAnswerOfATagIsNoBlockWhateverItsFirstByte() throws {
        var wire = Wire("iso14443")
        try wire.air("> 957012DE5F80135112")
        try wire.air("< 00FE51")
        // 03 begins the NDEF message of page 4; as a block it would be an APDU's answer. CRC_A computed.
        let read = try wire.air("> 300426EE")
        #expect(read.exchange == "OTHER")
        let answer = try wire.air("< 0316D1011255046E78702E636F6D2F6E669377")
        #expect(answer.values["iso14443.response.body.data"] == "0316D1011255046E78702E636F6D2F6E66")
        #expect(answer.values["iso7816.response.sw"] == nil)
    }

    @Test func theSameBytesAreABlockOnceTheCardSpeaksBlocks() throws {
        var wire = Wire("iso14443")
        try wire.air("> E0803173")
        try wire.air("< 06757781028002F0")
        try wire.air("> 0200B00000045D18")
        let answer = try wire.air("< 036F00EDAC")
        #expect(answer.values["iso7816.response.sw"] == "no precise diagnosis")
    }

    @Test func aCaptureThatBeginsInTheMiddleIsReadAsBlocks() throws {
        var wire = Wire("iso14443")
        let command = try wire.air("> 0200A404000E325041592E5359532E444446303100E042")
        #expect(command.exchange == "SELECT")
        let answer = try wire.air("< 026A82932F")
        #expect(answer.values["iso7816.response.sw"] == "file or application not found")
    }

    @Test func theChecksumOfTypeBTellsItselfAndTheActivationTellsItAfterThat() throws {
        var wire = Wire("iso14443")
        let request = try wire.air("> 05000071FF")
        #expect(request.values["iso14443.command.crcB"] == "71FF")
        try wire.air("< 50566473F200000000808171C8AD")
        let wrong = try wire.air("> 1D566473F200050101D4DB")
        #expect(wrong.remarks.contains { $0.hasPrefix("CRC_B is wrong: expected D4DA") })
    }

    // ISO/IEC 14443-4 7.5.4: bit 5 of the first byte of a block says that it goes on; the R(ACK) carries the other number.
    @Test func aChainWithoutItsLastBlockIsNoAnswer() throws {
        var wire = Wire("iso14443")
        try wire.air("> 0200B00000045D18")
        let part = try wire.air("< 126014C9A6")
        #expect(part.values["iso7816.response.data"] == nil)
        let acknowledge = try wire.air("> A36FC6")
        #expect(acknowledge.values["iso14443.command.body.pcb.nak"] == "R(ACK)")
        let last = try wire.air("< 035F019000F439")
        #expect(last.values["iso7816.response.data"] == "60145F01")
    }

    @Test func aWaitingTimeExtensionStandsBetweenACommandAndItsAnswer() throws {
        var wire = Wire("iso14443")
        try wire.air("> 0200B00000045D18")
        let asked = try wire.air("< F2019140")
        #expect(asked.values["iso14443.response.body.wtx.wtxm"] == "1")
        try wire.air("> F2019140")
        let answer = try wire.air("< 02601490009370")
        #expect(answer.exchange == "READ_BINARY")
        #expect(answer.values["iso7816.response.data"] == "6014")
    }

    @Test func aFrameWithoutBytesIsEmptyAndNotTheOneBefore() throws {
        var wire = Wire("iso14443")
        let read = try wire.air("> ")
        #expect(read.exchange == nil)
        #expect(read.values.keys.allSatisfy { !$0.hasPrefix("iso14443.command.body") })
    }

    @Test func aCommandThatNobodyAnswersLeavesNothingUnpaired() throws {
        var wire = Wire("iso14443")
        try wire.air("> 500057CD")
        let next = try wire.air("> 26")
        #expect(next.codes.isEmpty)
    }

    // Public report: CID 0 and a native command in the first frame, no CID and the wrapped form in the second.
    @Test func nativeAndWrappedCommandsOfDESFireHaveOneName() throws {
        var native = Wire("iso14443")
        let first = try native.air("> 0B00AA0288E7")
        #expect(first.exchange == "AUTHENTICATE_AES")
        #expect(first.values["desfire.command.code"] == "AuthenticateAES")
        #expect(first.values["desfire.command.parameters"] == "02")
        var wrapped = Wire("iso14443")
        let second = try wrapped.air("> 0390AA00000102009E2C")
        #expect(second.exchange == "AUTHENTICATE_AES")
        #expect(second.values["iso7816.command.ins"] == "AuthenticateAES")
        #expect(second.values["iso7816.command.data"] == "02")
        #expect(second.codes.isEmpty)
    }

    @Test func anAPDUAfterNativeCommandsIsAnAPDU() throws {
        var wire = Wire("iso14443")
        try wire.air("> 0B00AA0288E7")
        try wire.air("< 0B00AEC6C0")
        #expect(wire.decoder.sessions.contains { $0.name == "Framing" && $0.state == "native" })
        let command = try wire.air("> 0200A404000E325041592E5359532E444446303100E042")
        #expect(command.exchange == "SELECT")
        try wire.air("< 026A82932F")
        #expect(wire.decoder.sessions.contains { $0.name == "Framing" && $0.state == "open" })
    }
}

@Suite struct BlocksOfT1 {
    @Test func aCommandInTwoBlocksIsOneCommandAndKeepsItsAnswer() throws {
        var wire = Wire("t1")
        try wire.push("> 00200400A4040084")
        try wire.push("< 00900090")
        let command = try wire.push("> 00400807A0000002471001BB")
        #expect(command.exchange == "SELECT")
        let answer = try wire.push("< 000002900092")
        #expect(answer.exchange == "SELECT")
        #expect(answer.values["iso7816.response.sw"] == "normal processing")
    }

    // Public report: R-blocks back and forth, then the answer, which still belongs to the command.
    @Test func askingAgainDoesNotLoseTheCommand() throws {
        var wire = Wire("t1")
        try wire.push("> 00400B00A40400061122334455669A")
        let complaint = try wire.push("< 00820082")
        #expect(complaint.values["t1.response.pcb.complaint"] == "other error")
        try wire.push("> 00920092")
        let answer = try wire.push("< 0000026D006F")
        #expect(answer.exchange == "SELECT")
        #expect(answer.codes.isEmpty)
    }

    @Test func aWrongCheckIsSaidAndTheRestIsRead() throws {
        var wire = Wire("t1")
        let read = try wire.push("> 00400500B000000401")
        #expect(read.codes == [.failed])
        #expect(read.exchange == "READ_BINARY")
    }
}

@Suite struct CommandsToAReader {
    @Test(arguments: [
        ("> FF82000006FFFFFFFFFFFF", "iso7816.command.data.key", "6 bytes, secret"),
        ("> FF2000000431323334", "iso7816.command.data.pin", "4 bytes, secret"),
        ("> FFD6000710FFFFFFFFFFFFFF078069FFFFFFFFFFFF", "pcscReader.sectorTrailer.keyA", "6 bytes, secret"),
        ("> FFD6002C0449454D4B", "iso7816.command.data.keys", "4 bytes, secret"),
        ("> FF00000007D4421B01020304", "pcscReader.toChip.password", "4 bytes, secret"),
        ("> FFC200010795051B0102030400", "pcscReader.objects.transceive.password", "4 bytes, secret"),
    ])
    func keysAndPasswordsAreNeverShown(_ frame: String, _ path: String, _ text: String) throws {
        var wire = Wire("iso7816")
        let read = try wire.push(frame)
        #expect(read.values[path] == text)
    }

    @Test func aBlockThatHoldsNoKeyIsShown() throws {
        var wire = Wire("iso7816")
        let read = try wire.push("> FFD600040401020304")
        #expect(read.values["iso7816.command.data"] == "01020304")
    }

    @Test func whatTheCardDidNotAnswerIsInTheResultAndNotInTheStatus() throws {
        var wire = Wire("iso7816")
        try wire.push("> FFC200010395013000")
        let read = try wire.push("< C0030164019000")
        #expect(read.values["pcscReader.objects.result.sw"] == "the card did not answer")
        #expect(read.values["iso7816.response.sw"] == "normal processing")
    }

    @Test func aChipTellsWhatHappenedInTheAir() throws {
        var wire = Wire("iso7816")
        try wire.push("> FF00000004D4400130")
        let read = try wire.push("< D541019000")
        #expect(read.values["pcscReader.fromChip.error"] == "the card did not answer")
    }

    @Test func theSameInstructionMeansAnotherCommandToACard() throws {
        var wire = Wire("iso7816")
        #expect(try wire.push("> 00B0000410").exchange == "READ_BINARY")
        #expect(try wire.push("> FFB0000410").exchange == "READER_READ")
    }
}
