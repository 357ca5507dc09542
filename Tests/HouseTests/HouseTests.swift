// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing

/// A file of Swift, its code without comments and texts.
struct SwiftFile: Sendable {
    let path: String
    let text: String
    /// The lines with comments and the contents of texts taken out.
    let code: [String]

    init(_ path: String) throws {
        self.path = path
        text = try PackageFiles.text(path)
        code = Self.code(of: text)
    }

    static func all(in folder: String) throws -> [SwiftFile] {
        try PackageFiles.files(in: folder, ending: ".swift").map { try SwiftFile($0) }
    }

    /// The target that a file of `Sources` belongs to.
    var target: String { String(path.split(separator: "/").dropFirst().first ?? "") }

    var imports: [String] {
        code.compactMap { line in
            let words = line.split(separator: " ").map(String.init)
            guard let place = words.firstIndex(of: "import"), place <= 2, place + 1 < words.count else { return nil }
            return words[place + 1]
        }
    }

    /// `Sources/A/B.swift:12` for each line of code that `isAtFault` says so of.
    func places(where isAtFault: (String) -> Bool) -> [String] {
        zip(code, 1...).filter { isAtFault($0.0) }.map { "\(path):\($0.1): \($0.0.trimmingCharacters(in: .whitespaces))" }
    }

    /// Good enough for code that keeps to the formatter: line comments, one-line texts, texts of several lines.
    private static func code(of text: String) -> [String] {
        var isInText = false
        return text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            if line.contains("\"\"\"") {
                isInText.toggle()
                return ""
            }
            if isInText { return "" }
            var code = ""
            var isQuoted = false
            var depth = 0
            var previous: Character = " "
            for character in line {
                if isQuoted, previous == "\\", character == "(" { depth += 1 }
                if depth > 0 {
                    if character == "(", previous != "\\" { depth += 1 }
                    if character == ")" { depth -= 1 }
                } else if character == "\"", previous != "\\" {
                    isQuoted.toggle()
                    code.append(character)
                } else if !isQuoted {
                    code.append(character)
                    if code.hasSuffix("//") { return String(code.dropLast(2)) }
                }
                previous = previous == "\\" && character == "\\" ? " " : character
            }
            return code
        }
    }
}

/// Promises about structure.
@Suite struct HouseTests {
    private static let sources: [SwiftFile] = (try? SwiftFile.all(in: "Sources")) ?? []
    private static let everything: [SwiftFile] = sources + ((try? SwiftFile.all(in: "Tests")) ?? [])

    @Test func thereIsSomethingToLookAt() {
        #expect(Self.sources.count > 100)
        #expect(Self.everything.count > Self.sources.count)
    }

    // MARK: - Targets

    /// The house's targets in the order in which they may depend on each other: one imports only what stands above it.
    private static let order = [
        "CPCSCLite", "CLibCrypto", "CPcap", "CZlib", "Octets", "Threads", "CardCrypto", "TagTransport", "GlobalPlatform",
        "CardSockets", "PCSC",
        "CoreExtendedNFC",
        "SimulatedSecureElement", "SecureElementCredential", "VirtualCards", "Flows", "TraceFile", "Tracing", "GrammarRuntime",
        "GrammarLanguage", "GrammarLibrary", "TraceDecoding", "Replay", "Fuzzing", "tapdeck",
    ]

    @Test func everyFolderOfSourcesHasItsPlaceInTheOrder() {
        #expect(Set(Self.sources.map(\.target)).subtracting(Self.order).isEmpty)
    }

    @Test func aTargetImportsOnlyTargetsAboveIt() {
        for file in Self.sources {
            let place = Self.order.firstIndex(of: file.target) ?? 0
            for name in file.imports where Self.order.contains(name) {
                #expect((Self.order.firstIndex(of: name) ?? 0) < place, "\(file.path) imports \(name)")
            }
        }
    }

    static let forbidden: [(target: String, imports: [String])] = [
        ("CoreExtendedNFC", ["TraceFile", "Tracing", "TraceDecoding", "Replay", "Flows"]),
        ("SecureElementCredential", ["TraceFile", "Tracing", "TraceDecoding", "Replay", "Flows"]),
        ("SimulatedSecureElement", ["CoreExtendedNFC", "SecureElementCredential", "PCSC"]),
        ("VirtualCards", ["CoreExtendedNFC", "SecureElementCredential", "PCSC"]),
        ("Flows", ["TraceFile"]), ("TraceFile", ["TagTransport", "CardCrypto", "PCSC", "CoreExtendedNFC"]), ("Replay", ["PCSC"]),
        ("TraceDecoding", ["PCSC", "CoreExtendedNFC"]), ("TagTransport", ["PCSC", "CardCrypto"]), ("CardSockets", ["PCSC"]),
        ("Octets", ["Foundation", "FoundationEssentials"]), ("Threads", ["Foundation", "FoundationEssentials"]),
        ("CardCrypto", ["Foundation", "FoundationEssentials"]),
        ("GrammarRuntime", ["Foundation", "FoundationEssentials"]),
    ]

    @Test(arguments: forbidden.indices) func aTargetDoesNotImportWhatItMustNotKnow(_ index: Int) {
        let (target, names) = Self.forbidden[index]
        for file in Self.sources where file.target == target {
            #expect(Set(file.imports).isDisjoint(with: names), "\(file.path): \(file.imports)")
        }
    }

    @Test func theManifestListsTargetsInTheSameOrder() throws {
        let manifest = try PackageFiles.text("Package.swift")
        let names = manifest.matches(of: /(?m)^        part\("([A-Za-z]+)"/).map { String($0.1) }
        #expect(names.count > 8)
        #expect(names == Self.order.filter(names.contains))
        #expect(!manifest.contains("unsafeFlags"))
    }

    // MARK: - Code

    @Test func nothingInSourcesCanTrapOnPurpose() {
        let words = [
            "try!", "as!", "fatalError(", "preconditionFailure(", "assertionFailure(", "precondition(", "unsafelyUnwrapped",
        ]
        for file in Self.sources {
            #expect(file.places { line in words.contains { line.contains($0) } }.isEmpty)
        }
    }

    @Test func nothingInSourcesIsUnwrappedByForce() throws {
        // A word, a bracket or a parenthesis with ! behind it, which is neither != nor the type of an imported pointer.
        for file in Self.sources {
            #expect(file.places { $0.contains("!") && $0.firstMatch(of: /[A-Za-z0-9_\)\]]!(?!=)/) != nil }.isEmpty)
        }
    }

    @Test func theScannerTellsCodeFromTextAndComment() throws {
        let file = try SwiftFile("Tests/HouseTests/HouseTests.swift")
        // The words above stand in texts of this very file, which is no fault.
        #expect(file.places { $0.contains("fatalError") }.isEmpty)
        #expect(file.imports == ["Foundation", "TestSupport", "Testing"])
        #expect(file.places { $0.contains("func theScannerTellsCodeFromTextAndComment") }.count == 1)
    }

    @Test func everyFileBeginsWithItsLicence() {
        for file in Self.everything { #expect(file.text.hasPrefix("// SPDX-License-Identifier: MIT\n"), "\(file.path)") }
    }

    /// Files that are longer than they should be, until they are divided.
    private static let longFiles: Set<String> = []

    @Test func noFileIsLongerThan450Lines() {
        let long = Self.everything.filter { $0.text.count { $0 == "\n" } > 450 }.map(\.path)
        #expect(Set(long).subtracting(Self.longFiles).isEmpty)
        // One that was divided leaves the list.
        #expect(Self.longFiles.subtracting(long).isEmpty)
    }

    @Test func noFileNamesAFolderOfOneMachine() throws {
        let others = ["Tests/Scripts", "Traces", "Grammars"].flatMap { PackageFiles.files(in: $0, ending: "") }
            .filter { !$0.hasSuffix(".pcapng") }
        let roots = ["README.md", "Package.swift", ".ci/run", ".gitignore"]
        let texts =
            Self.everything.map { ($0.path, $0.text) }
            + others.compactMap { path in (try? PackageFiles.text(path)).map { (path, $0) } }
            + roots.compactMap { path in (try? PackageFiles.text(path)).map { (path, $0) } }
        // Spelled apart, so that this file does not name them itself.
        let folders = ["/ho" + "me/", "/Us" + "ers/", "/wo" + "rk/", "/ro" + "ot/"]
        for (path, text) in texts {
            for folder in folders { #expect(!text.contains(folder), "\(path) names \(folder)") }
        }
    }

    // MARK: - The environment

    /// Recording wraps the system's sources; a replay and the benches put others in their place; nobody else does either.
    @Test func theEnvironmentIsSetByTracingReplayFuzzingAndBenchesAlone() {
        let setters = ["CardEnvironment.with(", "CardEnvironment("]
        for file in Self.sources where !["Tracing", "Replay", "Fuzzing"].contains(file.target) {
            if file.path.hasSuffix("CardCrypto/Environment.swift") || file.path.hasSuffix("BenchVerb.swift") { continue }
            #expect(file.places { line in setters.contains { line.contains($0) } }.isEmpty)
        }
    }

    @Test func tracingOnlyWrapsWhatIsThere() {
        for file in Self.sources where file.target == "Tracing" {
            #expect(file.places { $0.contains("CardEnvironment(") }.isEmpty)
        }
        let wrapping = Self.sources.first { $0.path == "Sources/Tracing/RecordingEnvironment.swift" }
        #expect(wrapping?.places { $0.contains("var environment = CardEnvironment.current") }.count == 1)
    }

    /// Code outside the package can name neither a source, nor an environment of its own, nor the setter.
    @Test func whatSetsAnEnvironmentIsNotPublic() throws {
        let file = try SwiftFile("Sources/CardCrypto/Environment.swift")
        func line(_ text: String) throws -> String {
            try #require(file.code.first { $0.contains(text) }).trimmingCharacters(in: .whitespaces)
        }
        #expect(try line("static func with<").hasPrefix("package "))
        #expect(try line("static var local").hasPrefix("@TaskLocal private "))
        for name in [
            "protocol RandomSource", "protocol EnvironmentClock", "protocol KeySink", "struct SystemRandomSource",
            "struct SystemClock",
        ] {
            #expect(try line(name).hasPrefix("package "))
        }
        for name in ["var random:", "var clock:", "var keySink:", "var readersAllowed:"] {
            #expect(try line(name).hasPrefix("package "))
        }
        let initialisers = file.code.filter { $0.contains("init(") && !$0.contains("code:") }
        #expect(initialisers.count >= 1)
        #expect(initialisers.allSatisfy { $0.contains("package init(") })
    }

    /// A detached task and a thread of one's own do not inherit the environment, so a draw in one would not be recorded.
    @Test func theLibraryStartsNoTaskThatLosesTheEnvironment() {
        let words = ["Task.detached", "Thread(", "Thread.detach", "DetachedThread", "pthread_create", "DispatchQueue"]
        for file in Self.sources
        where ["CoreExtendedNFC", "SecureElementCredential", "Flows", "TagTransport"].contains(file.target) {
            #expect(file.places { line in words.contains { line.contains($0) } }.isEmpty)
        }
    }

    /// Whatever is random in the library comes from its environment.
    @Test func nothingInTheLibraryDrawsFromTheSystem() {
        let words = [
            "SystemRandomNumberGenerator", ".random(in", "getentropy", "RAND_bytes", "arc4random", "UUID()", ".randomElement(",
            ".shuffled(",
        ]
        for file in Self.sources
        where ["CoreExtendedNFC", "SecureElementCredential", "Flows", "TagTransport", "CardCrypto"].contains(file.target) {
            if file.path.hasSuffix("CardCrypto/Environment.swift") { continue }
            #expect(file.places { line in words.contains { line.contains($0) } }.isEmpty)
        }
    }

    // MARK: - The README

    private static let readme = try? PackageFiles.text("README.md")

    /// Every line of a code block that begins with `swift` or `tapdeck` names a verb or a product that exists.
    @Test(.enabled(if: readme != nil, "there is no README.md yet"))
    func theCommandsOfTheReadmeExist() throws {
        let text = try #require(Self.readme)
        let verbs = Set(
            Self.sources.filter { $0.path.hasPrefix("Sources/tapdeck/Verbs/") }
                .compactMap { $0.text.firstMatch(of: /static let name = "([a-z]+)"/).map { String($0.1) } })
        var isCode = false
        var checked = 0
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                isCode.toggle()
                continue
            }
            let words = line.split(separator: " ").map(String.init)
            guard isCode, let place = words.firstIndex(where: { $0 == "tapdeck" || $0.hasSuffix("/tapdeck") }),
                place + 1 < words.count
            else { continue }
            let verb = words[place + 1]
            guard place == 0 || ["$", "run", "sudo"].contains(words[place - 1]), !verb.hasPrefix("-") else { continue }
            checked += 1
            #expect(verbs.contains(verb), "\(line)")
        }
        #expect(checked > 0)
    }
}
