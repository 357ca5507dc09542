// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TestSupport
import Testing

@testable import VirtualCards

@Suite struct OptionsFileTests {
    /// A file of options in a folder of its own, which goes with this value.
    private struct Given {
        let folder: TemporaryFolder
        let path: String

        init(_ text: String) throws {
            folder = try TemporaryFolder()
            path = folder("a.options")
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        }
    }

    @Test func aFileMeansWhatTheCommandLineMeans() throws {
        let file = try Given(
            "# a passport\n\npace ecdh-gm-aes128:13,dh-im-3des:2 # two ways\n\tcan=500540 \r\nno-bac\nstrict no\n  dg   1,2")
        let plain = try VirtualCardSpecification(
            kind: "passport",
            arguments: ["--pace", "ecdh-gm-aes128:13,dh-im-3des:2", "--can=500540", "--no-bac", "--dg", "1,2"])
        #expect(try VirtualCardSpecification(kind: "passport", arguments: ["--options", file.path]) == plain)
        #expect(try VirtualCardSpecification(reference: "virtual:passport?options=\(file.path)") == plain)
    }

    @Test func whatStandsBesideTheFileWinsWhereverItStands() throws {
        let file = try Given("seed 1\ncan 500540\nno-bac\npace ecdh-gm-aes128:13")
        for arguments in [
            ["--seed", "2", "--no-bac=no", "--options", file.path], ["--options", file.path, "--seed", "2", "--no-bac=no"],
        ] {
            let options = try VirtualCardSpecification(kind: "passport", arguments: arguments).options
            #expect(options.values == ["seed": "2", "can": "500540", "pace": "ecdh-gm-aes128:13"])
        }
        let reference = "virtual:passport?options=\(file.path)&seed=3"
        #expect(try VirtualCardSpecification(reference: reference).options["seed"] == "3")
    }

    @Test(arguments: ["passport", "filesystem", "desfire", "ntag424"])
    func everyKindTakesAFile(kind: String) throws {
        let file = try Given("seed 77")
        let specification = try VirtualCardSpecification(kind: kind, arguments: ["--options", file.path])
        #expect(specification.options.values == ["seed": "77"])
        #expect(specification.reference == "virtual:\(kind)?seed=77")
    }

    @Test func aNumberSignInsideAWordIsNoComment() throws {
        let file = try Given("pin 12#45\npuk abc # d")
        let options = try VirtualCardSpecification(kind: "filesystem", arguments: ["--options", file.path]).options
        #expect(options.values == ["pin": "12#45", "puk": "abc"])
    }

    /// Mistakes of the file's form, and of values that only the making of the card meets.
    @Test(arguments: [
        ("\n  pcae dh-gm-3des:0", VirtualCardError.Code.unknownOption, 2, 3),
        ("seed 1\n# -\nseed 2", .repeatedOption, 3, 1), ("  pace   # nothing", .missingValue, 1, 7),
        ("strict maybe", .badValue, 1, 8), ("seed x", .badValue, 1, 6), ("seed = 5", .badValue, 1, 6),
        ("can 500540\npace  ecdh-gm-aes127:13", .badValue, 2, 7),
        ("pace ecdh-gm-aes128:13\nquirk refuse-el", .badValue, 2, 7), ("fault remove@3,gone@4", .badFault, 1, 16),
        ("options other", .badValue, 1, 1), ("--seed 1", .unknownOption, 1, 1), ("chunk 0", .badValue, 1, 7),
    ])
    func aMistakeIsToldWithLineAndColumn(text: String, code: VirtualCardError.Code, line: Int, column: Int) throws {
        let file = try Given(text)
        let error = #expect(throws: VirtualCardError.self) {
            try VirtualCardCatalog.make(try VirtualCardSpecification(kind: "passport", arguments: ["--options", file.path]))
        }
        #expect(error?.code == code)
        #expect(error?.line == line)
        #expect(error?.column == column)
        #expect(error?.description.hasPrefix("\(file.path), line \(line), column \(column): ") == true)
    }

    @Test func aValueBesideTheFileIsNotBlamedOnTheFile() throws {
        let file = try Given("seed 1")
        let error = #expect(throws: VirtualCardError.self) {
            try VirtualCardCatalog.make(
                try VirtualCardSpecification(kind: "passport", arguments: ["--options", file.path, "--seed", "x"]))
        }
        #expect(error?.description == "--seed takes a whole number, not 'x'")
    }

    @Test func aFileThatCannotBeReadIsNoMistakeOfTyping() throws {
        let folder = try TemporaryFolder()
        try Data([0x70, 0xFF, 0xFE]).write(to: URL(fileURLWithPath: folder("binary")))
        try Data(repeating: 0x23, count: 1 << 21).write(to: URL(fileURLWithPath: folder("large")))
        for path in [folder("missing"), folder(""), folder("binary"), folder("large")] {
            #expect(throws: VirtualCardError(.unreadableFile, "")) {
                try VirtualCardSpecification(kind: "passport", arguments: ["--options", path])
            }
        }
    }

    // MARK: The pages

    private func page(_ name: String) throws -> String {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
            "../../Sources/VirtualCards/VirtualCards.docc")
        return try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
    }

    @Test func theExampleOfThePageMakesACard() throws {
        let example = try page("VirtualCards.md").components(separatedBy: "```options\n")[1].components(separatedBy: "```")[0]
        let file = try Given(example)
        let specification = try VirtualCardSpecification(kind: "passport", arguments: ["--options", file.path])
        #expect(specification.options.values.count == 8)
        #expect(specification.options["ca"] == "ecdh-aes128:13")
        #expect(try VirtualCardCatalog.make(specification).kind == "passport")
    }

    @Test func everyOptionAndQuirkOfThePassportIsOnItsPage() throws {
        let page = try page("Passport.md")
        for option in try VirtualCardCatalog.kind(named: "passport").options {
            let name = option.placeholder.map { "\(option.name) \($0)" } ?? option.name
            #expect(page.contains("`\(name)`"), "\(name)")
        }
        let quirks = page.components(separatedBy: "### Quirks")[1]
        for quirk in VirtualCardCatalog.passportQuirks { #expect(quirks.contains("| `\(quirk.name)` |"), "\(quirk.name)") }
    }
}
