// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage
import GrammarRuntime
import Testing

/// The grammars of `Grammars/`, compiled once.
enum Shipped {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Grammars")

    static let sources: [GrammarSource] = {
        let files = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        return files.filter { $0.pathExtension == "grammar" }.sorted { $0.path < $1.path }.compactMap { file in
            (try? String(contentsOf: file, encoding: .utf8)).map { GrammarSource(name: file.lastPathComponent, text: $0) }
        }
    }()

    static let set = GrammarSet.compile(sources)
}

@Suite struct ShippedGrammars {
    @Test func everyGrammarCompilesAndItsExamplesHold() {
        #expect(!Shipped.sources.isEmpty)
        for diagnostic in Shipped.set.diagnostics { Issue.record(Comment(rawValue: diagnostic.description)) }
    }
}
