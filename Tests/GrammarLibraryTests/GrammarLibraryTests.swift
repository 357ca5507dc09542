// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage
import GrammarLibrary
import GrammarRuntime
import Testing

@Suite struct GrammarLibraryTests {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Grammars").path

    @Test func everyFileOfTheFolderIsEmbeddedAsItIs() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder).filter { $0.hasSuffix(".grammar") }.sorted()
        #expect(GrammarLibrary.embedded.map(\.name) == names)
        for source in GrammarLibrary.embedded {
            #expect(try source.text == String(contentsOfFile: "\(Self.folder)/\(source.name)", encoding: .utf8), "\(source.name)")
        }
    }

    @Test func theGrammarsBuiltInHoldNoMistake() {
        let set = GrammarSet.compile(GrammarLibrary.embedded)
        #expect(set.diagnostics.filter { $0.severity == .error }.map(\.description) == [])
    }

    @Test func theStandardLibraryKnowsCommandsAndTheNamesOfSecrets() {
        let program = GrammarLibrary.standard.program
        #expect(program.entry(named: "iso7816.Command") != nil)
        #expect(program.givenNames.contains("bac.seed"))
    }

    @Test func aFolderTakesThePlaceOfTheGrammarsBuiltIn() throws {
        try withFolder(["one.grammar": "grammar one\ncite \"nothing\"\nmessage Ping { kind : u8 }\n"]) { folder in
            let library = try GrammarLibrary(folder: folder)
            #expect(library.program.entryNames == ["one.Ping"])
        }
    }

    @Test func mistakesAreNamedWithTheirPlaces() throws {
        try withFolder(["one.grammar": "grammar one\ncite \"nothing\"\nmessage Ping { kind : Kind }\n"]) { folder in
            let error = #expect(throws: GrammarLibraryError.self) { try GrammarLibrary(folder: folder) }
            #expect(error?.code == .mistakes)
            #expect(error?.detail.first?.hasPrefix("one.grammar:3:23") == true)
        }
    }

    @Test func aFolderWithoutGrammarsIsRefused() throws {
        try withFolder(["readme.txt": ""]) { folder in
            #expect(throws: GrammarLibraryError.self) { try GrammarLibrary(folder: folder) }
        }
        let error = #expect(throws: GrammarLibraryError.self) { try GrammarLibrary(folder: "/nowhere/at/all") }
        #expect(error?.code == .unreadable)
    }

    private func withFolder(_ files: [String: String], _ body: (String) throws -> Void) throws {
        let folder = NSTemporaryDirectory() + "tapdeck-grammars-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for (name, text) in files { try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8) }
        try body(folder)
    }
}
