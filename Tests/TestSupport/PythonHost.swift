// SPDX-License-Identifier: MIT

public import Foundation

/// A program in Python of `Tests/Hosts` that stands on libraries by others, which are not part of this project.
///
/// `TAPDECK_TEST_PYTHON` names the interpreter that has them; `.ci/run` makes one where PyPI can be reached.
public struct PythonHost: Sendable {
    public let script: String
    /// Why it cannot run here; nil when it can.
    public let absence: String?

    public static let interpreter = ProcessInfo.processInfo.environment["TAPDECK_TEST_PYTHON"] ?? "python3"

    /// - Parameters:
    ///   - name: of the file.
    ///   - packages: what PyPI calls the libraries that it needs.
    public init(_ name: String, packages: String) {
        script = PackageFiles.root.path + "/Tests/Hosts/" + name
        let outcome = try? ProcessRunner.runBlocking(Self.interpreter, [script, "check"])
        absence =
            outcome?.end == .status(0)
            ? nil : "TAPDECK_TEST_PYTHON names no Python with PyPI's \(packages)"
    }

    public var isAvailable: Bool { absence == nil }
    /// For the reason of a skipped test.
    public var reason: String { absence ?? "" }

    public func run(
        _ arguments: [String], environment: [String: String] = [:], input: Data = Data()
    ) async throws -> ProcessRunner.Outcome {
        try await ProcessRunner.run(
            Self.interpreter, [script] + arguments, environment: environment.merging(["PYTHONIOENCODING": "utf-8"]) { $1 },
            input: input)
    }
}
