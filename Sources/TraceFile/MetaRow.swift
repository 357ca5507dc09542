// SPDX-License-Identifier: MIT

import Octets

/// A value of a JSON row, or the name under which it stands among the secrets: `{"sealed":"call:1:mrzKey"}`.
public enum Sealable<Value: Sendable & Equatable>: Sendable, Equatable {
    case plain(Value)
    case sealed(String)

    /// Nil when the value is sealed.
    public var plainValue: Value? { if case .plain(let value) = self { value } else { nil } }
}

/// One JSON row of `meta` or `reader:N`, by the value of its key `td`.
///
/// Keys that this version does not know are kept in `extra` and written again behind the known ones. A row that lacks
/// a key it must have, or has it with another type, is ``unknown(_:)`` with all that it holds.
public enum MetaRow: Sendable, Equatable {
    case transport(Transport)
    case call(Call)
    case progress(Progress)
    case entropy(Entropy)
    case clock(Clock)
    case state(State)
    case event(Event)
    case error(Failure)
    case `return`(Return)
    case reader(Reader)
    case mark(Mark)
    /// A row of a later version, or one that does not fit: the whole object, `td` included.
    case unknown([String: JSONValue])

    /// A card's connection: what the rows of an exchange go through.
    public struct Transport: Sendable, Equatable {
        public enum Kind: String, Sendable, CaseIterable { case iso7816, felica, iso15693, raw }
        public var id: Int
        public var kind: Kind
        public var identifier: [UInt8]?
        public var initialAID: [UInt8]?
        public var systemCode: [UInt8]?
        public var icManufacturerCode: Int?
        public var atr: [UInt8]?
        public var extra: [String: JSONValue] = [:]

        public init(
            id: Int, kind: Kind, identifier: [UInt8]? = nil, initialAID: [UInt8]? = nil, systemCode: [UInt8]? = nil,
            icManufacturerCode: Int? = nil, atr: [UInt8]? = nil
        ) {
            self.id = id
            self.kind = kind
            self.identifier = identifier
            self.initialAID = initialAID
            self.systemCode = systemCode
            self.icManufacturerCode = icManufacturerCode
            self.atr = atr
        }
    }

    /// A call of the library, or with `parent` a structured call of a transport.
    public struct Call: Sendable, Equatable {
        public var id: Int
        public var parent: Int?
        /// The flow's name; nil for a call by a user's closure, which replays from code only.
        public var flow: String?
        public var function: String
        public var args: [String: JSONValue]
        public var transport: Int?
        public var extra: [String: JSONValue] = [:]

        public init(
            id: Int, parent: Int? = nil, flow: String?, function: String, args: [String: JSONValue] = [:], transport: Int? = nil
        ) {
            self.id = id
            self.parent = parent
            self.flow = flow
            self.function = function
            self.args = args
            self.transport = transport
        }
    }

    public struct Progress: Sendable, Equatable {
        public var call: Int
        public var text: Sealable<String>
        public var extra: [String: JSONValue] = [:]

        public init(call: Int, text: Sealable<String>) {
            self.call = call
            self.text = text
        }
    }

    /// That random octets were drawn; they themselves are a secret with the name `call:N:LABEL:INDEX`.
    public struct Entropy: Sendable, Equatable {
        public var call: Int
        public var label: String
        public var index: Int
        /// In octets.
        public var length: Int
        public var extra: [String: JSONValue] = [:]

        public init(call: Int, label: String, index: Int, length: Int) {
            self.call = call
            self.label = label
            self.index = index
            self.length = length
        }
    }

    public struct Clock: Sendable, Equatable {
        public enum Kind: String, Sendable, CaseIterable { case calendar, monotonic }
        public var call: Int
        public var kind: Kind
        /// Nanoseconds; in the row they are text, since many readers of JSON keep 53 bits.
        public var nanoseconds: Int64
        public var extra: [String: JSONValue] = [:]

        public init(call: Int, kind: Kind, nanoseconds: Int64) {
            self.call = call
            self.kind = kind
            self.nanoseconds = nanoseconds
        }
    }

    public struct State: Sendable, Equatable {
        public var call: Int?
        public var machine: String
        public var from: String
        public var to: String
        public var extra: [String: JSONValue] = [:]

        public init(call: Int?, machine: String, from: String, to: String) {
            self.call = call
            self.machine = machine
            self.from = from
            self.to = to
        }
    }

    public struct Event: Sendable, Equatable {
        public var call: Int?
        public var name: String
        public var detail: JSONValue?
        public var extra: [String: JSONValue] = [:]

        public init(call: Int?, name: String, detail: JSONValue? = nil) {
            self.call = call
            self.name = name
            self.detail = detail
        }
    }

    /// A failure in place of an answer. Its detail is a secret: `call:N:error`.
    public struct Failure: Sendable, Equatable {
        /// The packet id of the exchange that has no answer.
        public var after: UInt64?
        public var domain: String
        public var `case`: String
        /// The reader service's return code as eight digits: `8010001D`.
        public var code: String?
        public var extra: [String: JSONValue] = [:]

        public init(after: UInt64?, domain: String, case: String, code: String? = nil) {
            self.after = after
            self.domain = domain
            self.case = `case`
            self.code = code
        }
    }

    /// How a call ended. Its result or error detail is a secret: `call:N:result`, `call:N:error`.
    public struct Return: Sendable, Equatable {
        public var call: Int
        public var ok: Bool
        public var domain: String?
        public var `case`: String?
        public var extra: [String: JSONValue] = [:]

        public init(call: Int, ok: Bool = true, domain: String? = nil, case: String? = nil) {
            self.call = call
            self.ok = ok
            self.domain = domain
            self.case = `case`
        }
    }

    /// What happened between the service and a reader.
    public struct Reader: Sendable, Equatable {
        /// `connect`, `reset`, `removal`, `control`; others may come.
        public var name: String
        public var code: String?
        public var control: Int?
        public var input: Sealable<[UInt8]>?
        public var output: Sealable<[UInt8]>?
        public var atr: [UInt8]?
        public var extra: [String: JSONValue] = [:]

        public init(
            name: String, code: String? = nil, control: Int? = nil, input: Sealable<[UInt8]>? = nil,
            output: Sealable<[UInt8]>? = nil,
            atr: [UInt8]? = nil
        ) {
            self.name = name
            self.code = code
            self.control = control
            self.input = input
            self.output = output
            self.atr = atr
        }
    }

    /// A word for people at a place of the trace.
    public struct Mark: Sendable, Equatable {
        public var text: String
        public var extra: [String: JSONValue] = [:]

        public init(text: String) { self.text = text }
    }
}
