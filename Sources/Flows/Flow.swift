// SPDX-License-Identifier: MIT

public import TagTransport

/// A call of the card library as data: a name, arguments and an outcome that can be written down, so that a recording can
/// say what was done and a replay can do it again.
public protocol Flow: Sendable {
    /// Octets are written in hexadecimal, enums by their names, and what is nil is left out.
    associatedtype Arguments: Codable & Sendable
    /// The same holds here; nothing in it may depend on time, addresses or the order of a dictionary.
    associatedtype Outcome: Codable & Sendable

    /// The name on the command line and in a trace: `passport`.
    static var name: String { get }
    /// The library's function with its labels.
    static var function: String { get }
    /// The top-level JSON keys of `arguments` that are sealed in a trace.
    static func secretArguments(of arguments: Arguments) -> Set<String>
    /// Makes the call.
    ///
    /// - Throws: what the library throws, unchanged.
    static func run(
        _ arguments: Arguments, over transport: any NFCTagTransport, progress: @escaping @Sendable (String) -> Void
    ) async throws -> Outcome
}

/// A flow whose arguments and outcome are JSON text.
public struct AnyFlow: Sendable {
    public let name: String
    public let function: String
    private let runJSON: @Sendable (String, any NFCTagTransport, @escaping @Sendable (String) -> Void) async throws -> String
    private let secretsOfJSON: @Sendable (String) -> Set<String>

    public init<F: Flow>(_ flow: F.Type) {
        name = F.name
        function = F.function
        runJSON = { text, transport, progress in
            let arguments = try CanonicalJSON.decode(F.Arguments.self, from: text, of: F.name)
            return try CanonicalJSON.encode(try await F.run(arguments, over: transport, progress: progress))
        }
        secretsOfJSON = { text in
            guard let arguments = try? CanonicalJSON.decode(F.Arguments.self, from: text, of: F.name) else {
                // Arguments that cannot be read may hold anything.
                return CanonicalJSON.keys(of: text)
            }
            return F.secretArguments(of: arguments)
        }
    }

    /// Runs the flow.
    ///
    /// - Parameter argumentsJSON: an object; keys that the flow does not know are passed over.
    /// - Returns: the outcome in canonical JSON: sorted keys, nothing that is nil. Equal outcomes give equal text.
    /// - Throws: ``FlowArgumentError``, or what the library throws.
    public func run(
        argumentsJSON: String, over transport: any NFCTagTransport, progress: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws -> String {
        try await runJSON(argumentsJSON, transport, progress)
    }

    /// The top-level keys of these arguments that are sealed in a trace; all of them when they cannot be read.
    public func secretArguments(ofJSON argumentsJSON: String) -> Set<String> { secretsOfJSON(argumentsJSON) }
}

/// Every flow there is.
public enum FlowTable {
    public static let all: [AnyFlow] = [
        AnyFlow(PassportFlow.self), AnyFlow(APDUFlow.self), AnyFlow(DESFireFlow.self), AnyFlow(NTAG424Flow.self),
        AnyFlow(NDEFFlow.self), AnyFlow(CredentialFlow.self),
    ]

    public static func named(_ name: String) -> AnyFlow? { all.first { $0.name == name } }
}

/// How flows wait. In a replay they do not.
package enum FlowClock {
    /// Whether time passes for the current task.
    @TaskLocal package static var runs = true
    /// How many times as long as it says a wait takes.
    @TaskLocal package static var scale = 1.0

    static func sleep(_ milliseconds: Int) async throws {
        if runs { try await Task.sleep(for: .milliseconds(milliseconds) * scale) }
    }
}
