// SPDX-License-Identifier: MIT

/// A value of an expression or a variable.
package enum Value: Sendable, Equatable {
    /// Not known: a secret that was not given, or what follows from one.
    case none
    case number(Int64)
    case octets([UInt8])
    /// Octets where they lie in the exchange; only while an expression is at work.
    case place(start: Int32, count: Int32)
}

extension Value {
    var isOctets: Bool {
        switch self {
        case .octets, .place: true
        case .none, .number: false
        }
    }
}

/// A variable and the exchange that set it.
package struct Variable: Sendable, Equatable {
    package var value: Value = .none
    package var exchange: Int?
}

/// Everything that a decoder remembers of one card connection between exchanges. Copying it is the undo.
public struct CardState: Sendable, Equatable {
    package var variables: [Variable]
    package var sessions: [Int]
    /// Layers that were started, the outermost last.
    package var layers: [Int] = []
    /// Layers that were started from given session keys, which is done once.
    package var spent: [Int] = []
    package var gathers: [GatherState]
    /// The exchange that a response belongs to.
    package var pending: Pending?

    /// The last command that travelled in blocks, whose answer is still to come.
    package var inner: Inner?

    package struct Inner: Sendable, Equatable {
        package var command: [UInt8]
        package var root: Int
        package var exchange: Int
        package var identifier: Int
        /// The gather that joined it: its grammar's gathers join the answer.
        package var carrier: Int
    }

    package struct Pending: Sendable, Equatable {
        package var exchange: Int
        package var identifier: Int
        package var root: Int
        /// The exchange of what carried the command, or -1.
        package var outer = -1
    }

    package struct GatherState: Sendable, Equatable {
        package var octets: [UInt8] = []
        package var pieces = 0
        /// The plain command that the parts answer, to be read again when they are whole.
        package var command: [UInt8] = []
        package var commandRoot = -1
        package var exchange = -1
        /// A field of the first part, for the whole.
        package var kept: [UInt8] = []
        /// The layers that opened the command.
        package var layers: UInt64 = 0
    }

    package init(_ program: Program) {
        variables = [Variable](repeating: Variable(), count: program.tables.variables.count)
        sessions = program.tables.sessions.map(\.initial)
        gathers = [GatherState](repeating: GatherState(), count: program.tables.gathers.count)
    }
}
