// SPDX-License-Identifier: MIT

import Foundation
import Testing

/// Promises about the source itself.
@Suite struct StructureTests {
    private var sources: [(name: String, text: String)] {
        get throws {
            let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
            return try ["CoreExtendedNFC", "Flows"].flatMap { part -> [(String, String)] in
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
            for module in ["VirtualCards", "TraceFile", "Tracing", "Replay", "CardSockets"] {
                #expect(!text.contains("import \(module)"), "\(name) imports \(module)")
            }
        }
    }
}
