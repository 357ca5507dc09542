// SPDX-License-Identifier: MIT

import FoundationEssentials
import GrammarLanguage
import GrammarRuntime
public import Octets

/// A set of grammars, compiled together: the ones built in, or those of a folder.
public struct GrammarLibrary: Sendable {
    /// What the decoder runs.
    public let program: Program
    /// Doubtful points of the grammars; none is an error.
    public let warnings: [GrammarDiagnostic]
    /// The text that the program was made from.
    public let sources: [GrammarSource]

    /// The grammars built in, compiled when they are first asked for.
    public static let standard: GrammarLibrary = {
        // The embedded files were compiled by the tests; what could not be understood is not in the program.
        let set = GrammarSet.compile(embedded, runningExamples: false)
        return GrammarLibrary(program: set.program, warnings: set.diagnostics, sources: embedded)
    }()

    /// Compiles grammars from their text.
    ///
    /// - Throws: ``GrammarLibraryError`` with `mistakes`, and with `tooLarge`.
    public init(_ sources: [GrammarSource]) throws(GrammarLibraryError) {
        let set = GrammarSet.compile(sources, runningExamples: false)
        if set.hasErrors {
            throw GrammarLibraryError(.mistakes, detail: set.diagnostics.filter { $0.severity == .error }.map(\.description))
        }
        self.init(program: set.program, warnings: set.diagnostics, sources: sources)
    }

    /// Compiles every file `NAME.grammar` of a folder, which takes the place of the grammars built in.
    ///
    /// - Throws: ``GrammarLibraryError`` with `unreadable`, `empty`, `tooLarge` or `mistakes`.
    public init(folder: String) throws(GrammarLibraryError) {
        let names: [String]
        do { names = try FileManager.default.contentsOfDirectory(atPath: folder) } catch {
            throw GrammarLibraryError(.unreadable, detail: ["\(folder) is no folder that can be read"])
        }
        var sources: [GrammarSource] = []
        for name in names.sorted() where name.hasSuffix(".grammar") {
            guard let octets = FileManager.default.contents(atPath: "\(folder)/\(name)") else {
                throw GrammarLibraryError(.unreadable, detail: ["\(folder)/\(name) cannot be read"])
            }
            guard octets.count <= Self.longestFile else {
                throw GrammarLibraryError(
                    .tooLarge, detail: ["\(folder)/\(name) has \(octets.count) bytes, over \(Self.longestFile)"])
            }
            sources.append(GrammarSource(name: name, text: String(decoding: octets, as: UTF8.self)))
        }
        guard !sources.isEmpty else { throw GrammarLibraryError(.empty, detail: ["\(folder) holds no file NAME.grammar"]) }
        try self.init(sources)
    }

    private init(program: Program, warnings: [GrammarDiagnostic], sources: [GrammarSource]) {
        self.program = program
        self.warnings = warnings
        self.sources = sources
    }

    private static let longestFile = 1 << 20
}

/// Why a set of grammars cannot be used. Equality is on the code.
public struct GrammarLibraryError: CodedError {
    public enum Code: String, Sendable {
        case unreadable, empty, tooLarge, mistakes
    }

    public let code: Code
    /// For mistakes each of them with its place; else one sentence.
    public let detail: [String]

    init(_ code: Code, detail: [String]) {
        self.code = code
        self.detail = detail
    }

    public var description: String { detail.joined(separator: "\n") }
}
