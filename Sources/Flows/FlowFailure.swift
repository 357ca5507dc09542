// SPDX-License-Identifier: MIT

public import CoreExtendedNFC
import Octets
import SecureElementCredential

/// An error as a trace writes it down: where it is from, which it is, and what is known of it.
public struct FlowFailure: Sendable, Codable, Equatable {
    /// `PCSC` for a transport's error, `NFCError`, `ErrorCode`, `EnvironmentError`, `Script`, `Steps`, `Arguments`, `Cancellation`; else the
    /// name of the error's type.
    public let domain: String
    /// The case's name.
    public let `case`: String
    /// The reader service's return code, the status word or another number that the error carries, in hexadecimal.
    public let code: String?
    /// For people. May hold something private.
    public let detail: String

    public init(domain: String, case: String, code: String? = nil, detail: String) {
        self.domain = domain
        self.case = `case`
        self.code = code
        self.detail = detail
    }

    /// Describes any error that a flow may throw.
    public static func describe(_ error: any Error) -> FlowFailure {
        switch error {
        case let error as NFCError:
            FlowFailure(domain: "NFCError", case: error.caseName, code: error.number, detail: error.description)
        case let error as TransportError:
            FlowFailure(
                domain: "PCSC", case: error.case.rawValue, code: error.code.map { hex($0, digits: 8) }, detail: error.description)
        case let error as APDUScriptError:
            FlowFailure(domain: "Script", case: error.code.rawValue, code: error.actual, detail: error.description)
        case let error as CredentialScriptError:
            FlowFailure(domain: "Steps", case: error.code.rawValue, detail: error.description)
        case let error as CredentialSession.ErrorCode:
            FlowFailure(domain: "ErrorCode", case: error.name, detail: error.name)
        case let error as FlowArgumentError:
            FlowFailure(domain: "Arguments", case: "arguments", detail: error.description)
        case is CancellationError:
            FlowFailure(domain: "Cancellation", case: "cancelled", detail: "cancelled")
        default: describeOther(error)
        }
    }

    /// Whose fault it is.
    public var blame: FaultSide {
        switch (domain, self.case) {
        case ("PCSC", "unsupportedOperation"), ("PCSC", "readersForbidden"), ("Arguments", _), ("Cancellation", _): .program
        case ("PCSC", "malformedResponse"), ("PCSC", "readerFailure"): .reader
        case ("PCSC", "timeout"): .card
        case ("PCSC", _): .outside
        case ("NFCError", "nfcNotAvailable"), ("NFCError", "sessionInvalidated"), ("NFCError", "userCanceled"),
            ("NFCError", "tagConnectionLost"), ("EnvironmentError", _):
            .outside
        case ("NFCError", "scanInProgress"), ("NFCError", "sessionInvalidatedByCaller"), ("NFCError", "cryptoError"),
            ("NFCError", "notOperableOnIOS"), ("NFCError", "unsupportedOperation"):
            .program
        case ("NFCError", _): .card
        case ("Script", "mismatch"): .card
        default: .program
        }
    }

    /// The exit status of a command that ended so: 1 the card or a check refused, 2 wrong usage, 3 the outside failed, 130
    /// interrupted.
    public var exitStatus: Int32 {
        switch (domain, self.case) {
        case ("Cancellation", _), ("NFCError", "userCanceled"), ("NFCError", "sessionInvalidatedByCaller"), ("PCSC", "cancelled"):
            130
        case ("Arguments", _): 2
        case ("Script", let code), ("Steps", let code): code == "mismatch" ? 1 : 2
        case ("NFCError", "sessionTimeout"): 3
        case ("PCSC", _), ("EnvironmentError", _): 3
        default: blame == .outside || blame == .reader ? 3 : 1
        }
    }

    /// An error of another module: its type's name, and its case or the code that it carries.
    private static func describeOther(_ error: any Error) -> FlowFailure {
        let domain = String(describing: type(of: error))
        let mirror = Mirror(reflecting: error)
        let name: String
        if let code = mirror.children.first(where: { $0.label == "code" || $0.label == "case" })?.value {
            name = caseName(of: code)
        } else {
            name = caseName(of: error)
        }
        return FlowFailure(domain: domain, case: name, detail: String(describing: error))
    }

    private static func caseName(of value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .enum {
            return mirror.children.first?.label ?? String(describing: value)
        }
        return String(describing: type(of: value))
    }

    static func hex(_ number: UInt32, digits: Int) -> String {
        let text = String(number, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}

extension NFCError {
    /// The number that the case carries, in hexadecimal.
    fileprivate var number: String? {
        switch self {
        case .unexpectedStatusWord(let sw1, let sw2): Hex.encode([sw1, sw2])
        case .applicationNotFound(let aid): Hex.encode(aid)
        case .desfireError(let status): "91" + Hex.encode([status.rawValue])
        case .invalidResponse(let data): data.isEmpty ? nil : Hex.encode(data.prefix(64))
        case .felicaBlockReadFailed(let flag), .felicaBlockWriteFailed(let flag): Hex.encode([UInt8(truncatingIfNeeded: flag)])
        case .writeFailed(let page): Hex.encode([page])
        default: nil
        }
    }
}
