// SPDX-License-Identifier: MIT

import CardCrypto
public import Flows
import FoundationEssentials
import Glibc
import Octets
import SecureElementCredential
import Synchronization
public import TagTransport
public import TraceFile

/// A recording of what passes between a program and its cards.
///
/// ```swift
/// let recording = try Recording(to: "a.pcapng")
/// let passport = try await recording.run {
///     try await CoreExtendedNFC.readPassport(transport: recording.wrap(transport), mrzKey: key)
/// }
/// ```
///
/// Every row is on disk when the call that caused it returns: a program that is killed leaves all but the row being
/// written. Recording changes nothing that passes; when the file cannot be written the program goes on, and ``failure`` says why.
public final class Recording: Sendable {
    /// Who writes traces, as their header says.
    public static let application = "tapdeck 1.0"

    let recorder: TraceRecorder
    /// The trace's path.
    public let path: String

    /// Creates the trace, and its secrets as `secrets` says, both with mode 0600.
    ///
    /// - Parameter replacing: whether existing files are replaced.
    /// - Throws: `TraceFileError`; `exists` when a file is there and is not to be replaced.
    public convenience init(to path: String, secrets: SecretsPlacement = .beside, replacing: Bool = false) throws(TraceFileError)
    {
        try self.init(
            to: path, secrets: secrets, replacing: replacing, application: Recording.application, session: nil,
            now: TraceRecorder.steadyClock()
        )
    }

    /// - Parameters:
    ///   - session: the session's UUID; a fresh one when nil.
    ///   - now: nanoseconds since 1970 for the rows' stamps.
    package init(
        to path: String, secrets: SecretsPlacement, replacing: Bool, application: String, session: String?,
        now: @escaping @Sendable () -> UInt64
    ) throws(TraceFileError) {
        let session = session ?? Recording.freshSession()
        let header = TraceHeader(
            session: session, hardware: Recording.machine().hardware, system: Recording.machine().system, application: application
        )
        self.path = path
        recorder = try TraceRecorder(
            creating: path, session: session, header: header, secrets: secrets, replacing: replacing, now: now
        )
    }

    /// A transport that passes everything to `transport` and writes it down. It conforms to the same sub-protocols.
    public func wrap(_ transport: any NFCTagTransport) -> any NFCTagTransport {
        let port = recorder.addReader(TransportDescription(transport))
        for key in (transport as? any CardKeyHolding)?.cardKeys ?? [] { recorder.recordKey(key.name, key.octets) }
        return switch transport {
        case let card as any ISO7816TagTransporting: RecordingISO7816Transport(card, recorder: recorder, port: port)
        case let card as any FeliCaTagTransporting: RecordingFeliCaTransport(card, recorder: recorder, port: port)
        case let card as any ISO15693TagTransporting: RecordingISO15693Transport(card, recorder: recorder, port: port)
        default: RecordingTransport(transport, recorder: recorder, port: port)
        }
    }

    /// Runs `operation` as one call: what it draws, what time it reads and which keys it agrees on is recorded.
    ///
    /// A closure cannot be found again from the file alone, so such a trace is replayed from code:
    /// `Replay(of: "a.pcapng").run { transport in ... }`. A result that is `Encodable` is kept among the secrets.
    public func run<Result>(
        _ function: String = #function, isolation: isolated (any Actor)? = #isolation, _ operation: () async throws -> Result
    ) async throws -> Result {
        try await call(flow: nil, function: function, arguments: [:], secret: [], port: nil, isolation: isolation) {
            let result = try await operation()
            return (result, (result as? any Encodable).flatMap { try? CanonicalJSON.encode($0) })
        }
    }

    /// Runs a flow of the table as one call, with its arguments in the trace: such a trace can be replayed by itself.
    ///
    /// - Parameters:
    ///   - argumentsJSON: the flow's arguments as a JSON object.
    ///   - transport: the transport to wrap.
    /// - Returns: the flow's result as canonical JSON.
    public func run(
        flow: AnyFlow, argumentsJSON: String, over transport: any NFCTagTransport,
        progress: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws -> String {
        let wrapped = wrap(transport)
        guard case .object(var arguments)? = try? JSONValue.parse(argumentsJSON) else {
            throw RecordingError.argumentsAreNoObject
        }
        arguments["transport"] = .omitted("transport")
        let secret = APDUFlow.$secretCommands.withValue(APDUFlow.SecretCommands { SealTable.isSecret(command: $0) }) {
            flow.secretArguments(ofJSON: argumentsJSON)
        }
        let recorder = recorder
        let port = (wrapped as? RecordingTransport)?.port
        return try await call(flow: flow.name, function: flow.function, arguments: arguments, secret: secret, port: port) {
            let result = try await flow.run(argumentsJSON: argumentsJSON, over: wrapped) { text in
                if let call = CallContext.current { recorder.recordProgress(text, call: call) }
                progress(text)
            }
            return (result, result)
        }
    }

    /// Writes a mark: a text of the user's own at this place of the trace.
    public func mark(_ text: String) { recorder.recordMark(text) }

    /// Why the trace could not be written on, when it could not.
    public var failure: TraceFileError? { recorder.state.withLock { $0.failure } }

    /// What has been recorded so far.
    public var summary: RecordingSummary {
        recorder.state.withLock { state in
            var summary = state.summary
            summary.rows = state.writer.rowCount
            summary.byteCount = state.writer.byteCount
            summary.secretsByteCount = state.secrets?.byteCount
            let first = state.firstTime ?? state.lastTime
            summary.seconds = Double(state.lastTime >= first ? state.lastTime - first : 0) / 1e9
            return summary
        }
    }

    /// Closes the files. Nothing can be recorded afterwards.
    public func close() throws(TraceFileError) {
        let failure = recorder.state.withLock { state -> TraceFileError? in
            do throws(TraceFileError) {
                try state.writer.close()
                try state.secrets?.close()
            } catch {
                if state.failure == nil { state.failure = error }
            }
            return state.failure
        }
        if let failure { throw failure }
    }

    private func call<Result>(
        flow: String?, function: String, arguments: [String: JSONValue], secret: Set<String>,
        port: TraceRecorder.Port?, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> (Result, String?)
    ) async throws -> Result {
        let call = recorder.beginCall(
            flow: flow, function: function, arguments: arguments, secret: secret, parent: CallContext.current, port: port
        )
        do {
            let (result, text) = try await CallContext.$current.withValue(
                call,
                operation: {
                    try await CredentialObservation.$current.withValue(
                        CredentialObservation(RecordingCredentialObserver(recorder: recorder, parent: call)),
                        operation: {
                            try await CardEnvironment.with(recorder.environment(for: call), isolation: isolation, body)
                        }, isolation: isolation)
                },
                isolation: isolation
            )
            recorder.finishCall(call, result: text)
            return result
        } catch {
            recorder.failCall(call, FlowFailure.describe(error))
            throw error
        }
    }

    private static func freshSession() -> String { UUID().uuidString }

    private static func machine() -> (hardware: String, system: String) {
        var name = utsname()
        uname(&name)
        func text<Field>(_ field: Field) -> String {
            withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        }
        // The machine's kind only: its name and release would say whose it is.
        return (text(name.machine), text(name.sysname))
    }
}

/// Misuse of a recording.
public enum RecordingError: Error, Sendable, CustomStringConvertible {
    /// A flow's arguments must be one JSON object.
    case argumentsAreNoObject

    public var description: String { "the flow's arguments are no JSON object" }
}
