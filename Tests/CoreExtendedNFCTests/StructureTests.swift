// SPDX-License-Identifier: MIT

import Foundation
import Testing

/// Promises about the source itself.
@Suite struct StructureTests {
    private var sources: [(name: String, text: String)] {
        get throws { try sources(of: ["CoreExtendedNFC", "Flows", "GlobalPlatform", "SecureElementCredential"]) }
    }

    private func sources(of parts: [String]) throws -> [(name: String, text: String)] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try parts.flatMap { part -> [(String, String)] in
            let folder = root.appendingPathComponent("Sources/\(part)")
            let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
            var texts: [(String, String)] = []
            while let url = files?.nextObject() as? URL {
                guard url.pathExtension == "swift" else { continue }
                texts.append((url.lastPathComponent, try String(contentsOf: url, encoding: .utf8)))
            }
            return texts
        }
    }

    /// A detached task would lose the environment of its call, and with it the recording.
    @Test func theLibraryStartsNoDetachedTaskAndDrawsNothingBehindTheEnvironment() throws {
        let all = try sources
        #expect(all.count > 20)
        for (name, text) in all {
            for word in [
                "Task.detached", "Thread(", "SystemRandomNumberGenerator", ".random(in", "UUID()", "Date()", "getentropy",
            ] {
                #expect(!text.contains(word), "\(name) has \(word)")
            }
        }
    }

    @Test func theLibraryKnowsNoVirtualCardAndNoTrace() throws {
        for (name, text) in try sources {
            for module in ["VirtualCards", "TraceFile", "Tracing", "Replay"] {
                #expect(!text.contains("import \(module)"), "\(name) imports \(module)")
            }
        }
        // A credential session is a card in its emulation; the card library is never one.
        for (name, text) in try sources(of: ["CoreExtendedNFC", "GlobalPlatform"]) {
            #expect(!text.contains("import CardSockets"), "\(name) imports CardSockets")
        }
    }
}
