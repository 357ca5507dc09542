// SPDX-License-Identifier: MIT

import Synchronization
import TagTransport

public enum NFCLogLevel: String, Sendable {
    case debug = "DEBUG"
    case info = "INFO"
    case error = "ERROR"
}

/// Gets the library's log lines.
public protocol NFCLogger: Sendable {
    /// - Parameter source: the part of the library that speaks: `Passport`, `Session`.
    func log(_ level: NFCLogLevel, _ message: String, source: String)
}

/// What the library logs, and where to.
public enum NFCLogConfiguration {
    private static let state = Mutex<(logger: (any NFCLogger)?, payloads: Bool)>((nil, false))

    /// Gets every line; nil, the default, logs nothing.
    public static var logger: (any NFCLogger)? {
        get { state.withLock { $0.logger } }
        set { state.withLock { $0.logger = newValue } }
    }

    /// Whether payloads, UIDs and block contents are logged. By default only headers, lengths and status words are.
    ///
    /// PIN, password and authentication exchanges stay `<redacted n bytes>`, and messages under secure messaging header and
    /// status word, in either case.
    public static var logPayloads: Bool {
        get { state.withLock { $0.payloads } }
        set { state.withLock { $0.payloads = newValue } }
    }

    /// Logger and payload rule at one moment; nil when nothing is logged.
    static var current: (logger: any NFCLogger, payloads: Bool)? {
        state.withLock { state in state.logger.map { ($0, state.payloads) } }
    }
}

/// Logs the exchanges of one flow.
final class ExchangeLog: Sendable {
    private let source: String
    private let redaction = Mutex(LogRedaction())

    init(source: String) { self.source = source }

    func exchange(_ command: CommandAPDU, _ response: ResponseAPDU) {
        guard let current = NFCLogConfiguration.current else { return }
        let (sent, received) = redaction.withLock { $0.exchange(command, response, payloads: current.payloads) }
        current.logger.log(.debug, sent, source: source)
        current.logger.log(.debug, received, source: source)
    }
}
