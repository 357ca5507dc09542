// SPDX-License-Identifier: MIT

import CardCrypto
import CardSockets
import Octets
import Testing

@testable import VirtualCards

/// The virtual DESFire and NTAG 424 DNA by their frames alone.
@Suite struct DESFireCardTests {
    @Test func aWrappedCommandIsAnsweredWrappedAndABareOneBare() throws {
        let card = try card("desfire")
        try play(
            [
                ("906A000000", "F000010100009100"), ("6A", "00F00001010000"),
                ("905A000003F0000100", "9100"), ("5AF00001", "00"), ("906F000000", "0102030405069100"), ("6F", "00010203040506"),
            ], on: try VirtualCardTestsLayouts.two())
        try play([("60", "AF04010112001A05"), ("AF", "AF04010102011A05"), ("AF", "00*")], on: card)
        try play([("9060000000", "04010112001A0591AF"), ("90AF000000", "04010102011A0591AF"), ("90AF000000", "*9100")], on: card)
    }

    // Row F9 of the field reports: Windows asks every card for a PIV application; the answer is an ISO one.
    @Test func whoeverAsksForAnotherCardIsAnsweredAsISOSays() throws {
        try play(
            [
                ("00A404000BA0000003974349445F0100", "6A82"), ("00CA7F6800", "6D00"), ("00A4040C07D276000085010000", "9000"),
                ("00A4040C07D276000085010100", "9000"), ("00A4000C02E103", "9000"),
                ("00B000000F", "000F20003A00340406E10400FF00009000"),
                ("00B0001001", "6B00"), ("00B0000E02", "6700"), ("00A4000C02E1FF", "6A82"),
            ], on: card("desfire"))
    }

    @Test(arguments: [
        ("90FF000000", "911C"), ("905A00000300000900", "91A0"), ("905A0000020000" + "00", "917E"),
        ("90F500000100" + "00", "919D"),
        ("90AF000000", "911C"), ("9064000001" + "0100", "9140"), ("90C4000002000000", "91AE"), ("9051000000", "91AE"),
        ("90FC000000", "91AE"), ("906A010000", "919E"), ("90CA00000500000001" + "0100", "919E"), ("90F5000000", "917E"),
        ("90710000020000" + "00", "91AE"), ("90AA00000100" + "00", "91AE"), ("900A00000105" + "00", "9140"),
    ])
    func aRefusalSaysWhy(command: String, answer: String) throws {
        try play([(command, answer)], on: card("desfire"))
    }

    @Test func anUnfinishedChainIsBrokenByAnotherCommand() throws {
        let card = try VirtualCardTestsLayouts.two()
        try play(
            [
                ("905A000003F0000100", "9100"), ("903D00000901000000200000" + "01" + "0200", "91AF"), ("906F000000", "91CA"),
                ("906F000000", "0102030405069100"), ("901A00000100" + "00", "91AE"), ("90AA00000100" + "00", "*91AF"),
                ("906F000000", "91CA"), ("90AA00000100" + "00", "*91AF"), ("90AF000001" + "0000", "917E"),
            ], on: card)
    }

    @Test func authenticationsArePutOffAfterThreeFailures() throws {
        let card = try card("desfire?delay=2")
        let wrong = "90AF000020" + String(repeating: "00", count: 32) + "00"
        var steps: [(String, String)] = [("905A000003F0000100", "9100")]
        for _ in 0..<3 { steps += [("90AA0000010000", "*91AF"), (wrong, "91AE")] }
        steps += [("90AA0000010000", "91AD"), ("9071000002000000", "91AD"), ("90AA0000010000", "*91AF"), (wrong, "91AE")]
        steps += [("90AA0000010000", "91AD")]
        try play(steps, on: card)
        // An EV1 puts nothing off.
        let old = try self.card("desfire?generation=ev1")
        try play(
            (0..<6).flatMap { _ in [("901A0000010000", "*91AF"), ("90AF000010" + wrong.dropFirst(10).prefix(32) + "00", "91AE")]
            }, on: old)
    }

    private func card(_ reference: String) throws -> VirtualCard {
        try VirtualCardCatalog.make(VirtualCardSpecification(reference: reference)).on()
    }

    @Test(arguments: [
        ("d40", "1A", "911C"), ("d40", "AA", "911C"), ("d40", "71", "911C"), ("ev1", "71", "911C"), ("ev1", "0A", "*91AF"),
        ("d40", "0A", "*91AF"), ("ev3", "1A", "*91AF"),
    ])
    func aGenerationHasItsChannels(generation: String, code: String, answer: String) throws {
        let parameters = code == "71" ? "020000" : "0100"
        try play([("90\(code)0000\(parameters)00", answer)], on: card("desfire?generation=\(generation)"))
    }

    @Test(arguments: [
        ("apq 1", "'apq' is no statement"), ("app 0102", "an application identifier is 3 bytes"),
        ("key 0 00", "an app must come first"),
        ("app 010203 aes keys 15", "a number of keys is 1 to 14"),
        ("app 010203; app 010203", "application 010203 is there already"),
        ("app 010203 aes; key 1 00", "there is no key 1"), ("app 010203 aes; key 0 00", "a aes key has 16 bytes"),
        ("app 010203; file 1 std 0 plain EEEE", "a size is 1 to 8192"),
        ("app 010203; file 1 tape 1", "'tape' is no kind of file"),
        ("app 010203; file 1 std 4 loud EEEE", "'loud' is none of"),
        ("app 010203; file 1 std 4 plain EEE", "access rights is 2 bytes"),
        ("app 010203; file 1 std 1 plain EEEE = 0102", "2 bytes do not fit"),
        ("app 010203; file 1 cyclic 4x1 plain EEEE", "a record file"),
        ("app 010203; file 1 value 1..0 0 plain EEEE", "a value file"), ("app 010203 name 01", "an application with a name"),
        ("app 010203 aes; file 1 std 1 plain EEEE limited", "only a value file"), ("picc aes 00", "a key is 16 bytes"),
        ("app 010203 aes; file 1 std 1 plain EEEE; file 1 std 1 plain EEEE", "file 1 is there already"),
    ])
    func aLayoutThatCannotBeReadIsRefusedWithItsStatement(layout: String, text: String) {
        let error = #expect(throws: VirtualCardError.self) {
            try VirtualCardCatalog.make(VirtualCardSpecification(kind: "desfire", arguments: ["--layout", layout]))
        }
        #expect(error?.code == .badValue && error?.description.contains(text) == true, "\(error?.description ?? "")")
        #expect(error?.description.hasPrefix("--layout: statement \(layout.split(separator: ";").count): ") == true)
    }

    @Test func commentsAndLinesAreAsGoodAsSemicolons() throws {
        let card = try VirtualCardCatalog.make(
            VirtualCardSpecification(
                kind: "desfire",
                arguments: [
                    "--layout",
                    "# a card\napp 010203 aes keys 2 # two\n\n  file 1 std 4 plain EEEE = 0102; file 2 value 0..5 3 plain EEEE",
                ])
        ).on()
        try play(
            [
                ("905A00000301020300", "9100"), ("90BD0000070100000000000000", "010200009100"),
                ("906C00000102" + "00", "030000009100"),
            ], on: card)
    }

    // NT4H2421Gx 10.7.1: what a change of settings must have.
    @Test func dynamicMessagingIsCheckedBeforeItIsKept() throws {
        #expect(throws: DESFireRefusal.length) { try NTAGMessaging([0xC1, 0xF0], counter: 0) }
        #expect(throws: DESFireRefusal.parameter) {
            try NTAGMessaging([0xC1, 0x00, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0], counter: 0)
        }
        #expect(throws: DESFireRefusal.length) { try NTAGMessaging([0xC1, 0xF0, 0x00, 0, 0, 0], counter: 0) }
        let whole = try NTAGMessaging([0xC1, 0xF0, 0x00, 200, 0, 0, 10, 0, 0, 10, 0, 0], counter: 0)
        #expect(whole.fits(256) && !whole.fits(247))
        let backwards = try NTAGMessaging([0xC1, 0xF0, 0x00, 0, 0, 0, 11, 0, 0, 10, 0, 0], counter: 0)
        #expect(!backwards.fits(256))
    }

    /// A short generator of its own, so that a failure can be had again from the seed in its message.
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            // splitmix64.
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    private static let codes: [UInt8] = [
        0x0A, 0x1A, 0xAA, 0x71, 0x77, 0xAF, 0x60, 0x51, 0x6E, 0x5C, 0x3C, 0x6A, 0x6D, 0x5A, 0xCA, 0xDA, 0x45, 0x54, 0x64, 0xC4,
        0xC6,
        0x56, 0x57, 0x55, 0x6F, 0x61, 0xF5, 0x5F, 0xCD, 0xCB, 0xCC, 0xC1, 0xC0, 0xCE, 0xDF, 0xF6, 0xBD, 0x3D, 0xBB, 0x3B, 0xDB,
        0xEB,
        0x6C, 0x0C, 0xDC, 0x1C, 0xAD, 0x8D, 0xAB, 0x8B, 0xBA, 0xC7, 0xA7, 0xC8, 0xFC,
    ]

    @Test(arguments: [
        "desfire", "desfire?generation=d40", "desfire?generation=ev1", "desfire?fault=flip@3,reset@7", "ntag424", "ntag424?lrp",
    ])
    func noCommandStopsACard(reference: String) throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var numbers = Numbers(state: seed)
        // Everybody may do everything, so that commands reach into the files.
        let layout =
            "&layout=app%20F00001%20aes%20keys%202;file%201%20std%2040%20plain%20EEEE;file%202%20backup%2040%20mac%20EEEE;"
            + "file%203%20value%20-5..9%201%20full%20EEEE%20limited;file%204%20linear%204x3%20plain%20EEEE;file%205%20cyclic%204x3%20plain%20EEEE"
        let isPlain = reference.hasPrefix("desfire") && !reference.contains("d40")
        let whole = isPlain ? reference + (reference.contains("?") ? "" : "?seed=1") + layout : reference
        let card = try card(whole)
        var statusWords: Set<[UInt8]> = []
        for step in 0..<20_000 {
            if step % 40 == 0 {
                card.powerOn()
                _ = try card.send([0x90, 0x5A, 0, 0, 3, 0xF0, 0, 1, 0])
            }
            let code = Self.codes.randomElement(using: &numbers) ?? 0
            var body: [UInt8] = []
            switch Int.random(in: 0..<4, using: &numbers) {
            case 0: break
            case 1: body = [UInt8.random(in: 0...6, using: &numbers)]
            case 2:
                let length = UInt8.random(in: 0...9, using: &numbers)
                body = [UInt8.random(in: 1...5, using: &numbers), UInt8.random(in: 0...3, using: &numbers), 0, 0, length, 0, 0]
                body += [UInt8](repeating: 1, count: Int(length))
            default: body = (0..<Int.random(in: 0...40, using: &numbers)).map { _ in UInt8.random(in: 0...255, using: &numbers) }
            }
            let command: [UInt8] =
                switch Int.random(in: 0..<4, using: &numbers) {
                case 0 where reference.hasPrefix("desfire"): [code] + body
                case 1:
                    [
                        0x00, [0xA4, 0xB0, 0xD6, 0xB2, 0xE2, 0x84, 0x82, 0x88].randomElement(using: &numbers) ?? 0,
                        UInt8.random(in: 0...5, using: &numbers), UInt8.random(in: 0...12, using: &numbers),
                    ]
                        + (body.isEmpty ? [0] : [UInt8(body.count)] + body + [0])
                default: [0x90, code, 0, 0] + (body.isEmpty ? [0] : [UInt8(body.count)] + body + [0])
                }
            let answer = try card.send(command)
            guard (1...65_538).contains(answer.count) else {
                Issue.record("seed \(seed), step \(step), command \(command)")
                return
            }
            if command.first == 0x90 { statusWords.insert(Array(answer.suffix(2))) }
        }
        // The commands reach into the card, and are not all refused at its door.
        #expect(statusWords.count > 8 && statusWords.contains([0x91, 0x00]), "seed \(seed): \(statusWords)")
    }
}

enum VirtualCardTestsLayouts {
    /// The default card without its NDEF application's place in the list.
    static func two() throws -> VirtualCard {
        let files = (1...6).map { "file \($0) std 32 plain EEEE" }.joined(separator: ";")
        return try VirtualCardCatalog.make(
            VirtualCardSpecification(
                kind: "desfire", arguments: ["--layout", "app F00001 aes keys 1;\(files);app 010000 aes"])
        ).on()
    }
}
