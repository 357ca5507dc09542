// SPDX-License-Identifier: MIT

import GrammarLanguage
import GrammarRuntime
import Octets
import Testing

/// ICAO Doc 9303-11 appendix D: every value from there.
enum AppendixD {
    static let seed = "239AB9CB282DAF66231DC5A4DF6BFBAE"
    static let frames: [(request: String, response: String)] = [
        ("0084000008", "4608F919887022129000"),
        (
            "008200002872C29C2371CC9BDB65B779B8E8D37B29ECC154AA56A8799FAE2F498F76ED92F25F1448EEA8AD90A728",
            "46B9342A41396CD7386BF5803104D7CEDC122B9132139BAF2EEDC94EE178534F2F2D235D074D74499000"
        ),
        ("0CA4020C158709016375432908C044F68E08BF8B92D635FF24F800", "990290008E08FA855A5D4C50A8ED9000"),
        ("0CB000000D9701048E08ED6705417E96BA5500", "8709019FF0EC34F9922651990290008E08AD55CC17140B2DED9000"),
        (
            "0CB000040D9701128E082EA28A70F3C7B53500",
            "871901FB9235F4E4037F2327DCC8964F1F9B8C30F42C8E2FFF224A990290008E08C8B2787EAEA07D749000"
        ),
    ]
    static let plain: [(request: String, response: String)] = [
        ("00A4020C02011E", "9000"), ("00B0000004", "60145F019000"),
        ("00B0000412", "04303130365F36063034303030305C0261759000"),
    ]
}

/// One decoder over `Shipped.set` and what it said.
struct Bench {
    var decoder: Decoder
    let command: Int
    let response: Int
    var notes: [(frame: Int, code: AnnotationCode, path: String, text: String, blame: Blame?)] = []
    var plain: [String] = []
    var number = 0

    init(secrets: [String: String] = [:]) throws {
        decoder = Decoder(Shipped.set.program, secrets: try secrets.mapValues { try Hex.decode($0) })
        command = try #require(Shipped.set.program.entry(named: "iso7816.Command"))
        response = try #require(Shipped.set.program.entry(named: "iso7816.Response"))
    }

    mutating func run(_ frames: [(request: String, response: String)]) throws {
        for frame in frames {
            number += 1
            note(decoder.push(request: try Hex.decode(frame.request), entry: command, exchange: number))
            note(decoder.push(response: try Hex.decode(frame.response), entry: response, exchange: number))
        }
    }

    private mutating func note(_ outcome: Decoder.Outcome) {
        for annotation in decoder.annotations[outcome.annotations] {
            let path = annotation.span >= 0 ? decoder.path(of: Int(annotation.span)) : ""
            notes.append((number, annotation.code, path, decoder.text(of: annotation), annotation.blame))
        }
        for buffer in outcome.buffers where decoder.buffers[buffer].origin == .plain {
            plain.append(Hex.encode(decoder.octets(ofBuffer: buffer)))
        }
    }

    func count(_ code: AnnotationCode) -> Int { notes.filter { $0.code == code }.count }
}

@Suite struct SecureMessagingDecoding {
    @Test func theWorkedExampleOpensFromTheSeedAlone() throws {
        var bench = try Bench(secrets: ["bac.seed": AppendixD.seed])
        try bench.run(AppendixD.frames)
        #expect(bench.plain == AppendixD.plain.flatMap { [$0.request, $0.response] })
        // Two MACs and three nonces of BAC; MAC, and Le or status, of six protected messages.
        #expect(bench.count(.held) == 5 + 6 * 2)
        #expect(bench.notes.allSatisfy { $0.code == .held })
        #expect(bench.decoder.sessions.contains { $0.name == "BACSession" && $0.state == "secured" })
    }

    @Test func aSecretOfAnotherLengthIsNotTaken() throws {
        var bench = try Bench()
        let isShort = bench.decoder.give("bac.seed", [1, 2, 3])
        #expect(!isShort)
        let isRight = bench.decoder.give("bac.seed", try Hex.decode(AppendixD.seed))
        #expect(isRight)
    }

    @Test func withoutTheSeedItIsSealedAndNothingIsWrong() throws {
        var bench = try Bench()
        try bench.run(AppendixD.frames)
        #expect(bench.plain.isEmpty)
        #expect(bench.count(.sealed) > 0)
        #expect(bench.notes.allSatisfy { $0.code == .sealed || $0.code == .held }, "\(bench.notes)")
    }

    @Test func oneWrongBitOfAMACFailsThereAndEverythingAfterItStillOpens() throws {
        var frames = AppendixD.frames
        frames[2].request = frames[2].request.replacing("BF8B92D635FF24F8", with: "BF8B92D635FF24F9")
        var bench = try Bench(secrets: ["bac.seed": AppendixD.seed])
        try bench.run(frames)
        let failures = bench.notes.filter { $0.code == .failed }
        #expect(failures.count == 1)
        #expect(failures.first?.frame == 3)
        #expect(failures.first?.path == "secureMessaging.obj.mac")
        #expect(failures.first?.blame == .program)
        #expect(
            failures.first?.text
                == "command MAC is wrong at SSC 887022120C06C227: expected BF8B92D635FF24F8, found BF8B92D635FF24F9")
        #expect(bench.plain == AppendixD.plain.flatMap { [$0.request, $0.response] })
    }

    @Test func aCounterThatIsOffIsNamedAndKept() throws {
        var bench = try Bench(secrets: [
            "secureMessaging.enc": "979EC13B1CBFE9DCD01AB0FED307EAE5", "secureMessaging.mac": "F1CB1F1FB5ADF208806B89DC579DC1F8",
            // Two messages early.
            "secureMessaging.ssc": "887022120C06C224",
        ])
        try bench.run(Array(AppendixD.frames[2...]))
        let failures = bench.notes.filter { $0.code == .failed }
        #expect(failures.count == 1)
        #expect(failures.first?.text.hasSuffix("right for ssc +2") == true)
        #expect(bench.plain == AppendixD.plain.flatMap { [$0.request, $0.response] })
    }

    @Test func aBareStatusWordPutsTheCounterBack() throws {
        var bench = try Bench(secrets: ["bac.seed": AppendixD.seed])
        // A read that the card refuses without secure messaging, then the worked example goes on with the counter that it had.
        var frames = AppendixD.frames
        frames.insert(("0CB000000D9701008E08000000000000000000", "6700"), at: 3)
        try bench.run(frames)
        #expect(bench.notes.contains { $0.frame == 4 && $0.code == .remark })
        #expect(bench.notes.filter { $0.frame > 4 }.allSatisfy { $0.code == .held })
    }

    @Test func aPlainCommandEndsSecureMessaging() throws {
        var bench = try Bench(secrets: ["bac.seed": AppendixD.seed])
        try bench.run(Array(AppendixD.frames[..<3]) + [("00A4000C023F00", "9000")] + Array(AppendixD.frames[3...]))
        #expect(bench.plain.count == 2)
        #expect(bench.notes.contains { $0.frame == 4 && $0.code == .remark })
    }
}

@Suite struct SecureMessagingSealing {
    @Test func plainCommandsAndAnswersSealToTheWorkedExample() throws {
        var bench = try Bench(secrets: ["bac.seed": AppendixD.seed])
        try bench.run(Array(AppendixD.frames[..<2]))
        for (plain, sealed) in zip(AppendixD.plain, AppendixD.frames[2...]) {
            let command = bench.decoder.seal(try Hex.decode(plain.request), entry: bench.command, isRequest: true)
            #expect(command.map { Hex.encode($0) } == sealed.request)
            let response = bench.decoder.seal(try Hex.decode(plain.response), entry: bench.response, isRequest: false)
            #expect(response.map { Hex.encode($0) } == sealed.response)
        }
    }

    // A message of a document session as gmrtd's tests have it.
    @Test func anAESCommandSealsAsADocumentTookIt() throws {
        var bench = try Bench()
        bench.decoder.give("secureMessaging.enc", try Hex.decode("CC86415F2ED7E8FD663B754265695AE1"))
        bench.decoder.give("secureMessaging.mac", try Hex.decode("581E84B8EE06C4D3EEE30461498D7FB3"))
        bench.decoder.give("secureMessaging.ssc", try Hex.decode("000000000000000000000000000000BA"))
        let sealed = bench.decoder.seal(
            try Hex.decode("002241A40F800A04007F000702020302028401C3"), entry: bench.command, isRequest: true)
        #expect(sealed.map { Hex.encode($0) } == "0C2241A41D871101980953D37F67558690045D78A853B18A8E08929767A2CEF172E200")
    }

    @Test func aLongPlainCommandIsSealedInExtendedForm() throws {
        var bench = try Bench(secrets: ["bac.seed": AppendixD.seed])
        try bench.run(Array(AppendixD.frames[..<2]))
        let state = bench.decoder.state
        let plain = try Hex.decode("00D60000FA") + [UInt8](repeating: 0x5A, count: 250)
        let result = bench.decoder.seal(plain, entry: bench.command, isRequest: true)
        let sealed = try #require(result)
        #expect(sealed.count == 4 + 3 + (1 + 3 + 1 + 256) + 10 + 2)
        bench.decoder.state = state
        let outcome = bench.decoder.push(request: sealed, entry: bench.command)
        #expect(bench.decoder.annotations[outcome.annotations].allSatisfy { $0.code == .held })
        #expect(bench.decoder.octets(ofBuffer: 1) == plain)
    }

    @Test func withoutALayerNothingIsSealed() throws {
        var bench = try Bench()
        let sealed = bench.decoder.seal([0x00, 0xB0, 0x00, 0x00, 0x04], entry: bench.command, isRequest: true)
        #expect(sealed == nil)
    }
}
