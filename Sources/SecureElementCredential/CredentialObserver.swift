// SPDX-License-Identifier: MIT

import FoundationEssentials

/// Who is told of everything that a session is asked, answers and becomes, for a trace of it.
///
/// A session keeps the observer that was ``current`` when it started.
package protocol CredentialObserver: Sendable {
    /// A call begins.
    ///
    /// - Returns: a number for its end.
    func began(_ function: String, _ arguments: [CredentialArgument]) -> Int
    /// A call ended with the values that it gave, or with an error.
    func ended(_ call: Int, _ result: Result<[CredentialArgument], CredentialSession.ErrorCode>)
    /// The session's state changed.
    func changed(from: CredentialSession.State, to: CredentialSession.State, call: Int?)
    /// Something happened that is no call: an event of the stream, or what led to it.
    func happened(_ name: String, _ detail: [CredentialArgument], call: Int?)
    /// Session time went on by itself: a clock that stands still was moved.
    func timePassed(_ nanoseconds: Int64)
    /// The card came into the reach of contactless readers, or left it.
    func contactlessCard(isPresent: Bool, atr: [UInt8])
    /// A reader gave it power, reset it or left it.
    func contactlessField(isPresent: Bool, atr: [UInt8])
    func contactlessCommand(_ command: [UInt8]) -> UInt64
    func contactlessAnswer(_ answer: [UInt8]?, to command: [UInt8], _ exchange: UInt64)
}

/// A named value of a call.
package struct CredentialArgument: Sendable, Equatable {
    package enum Value: Sendable, Equatable {
        case text(String)
        case octets([UInt8])
        case number(Int)
        case flag(Bool)
        case list([[CredentialArgument]])
        /// Something that is no data.
        case omitted(String)
    }

    package var name: String
    package var value: Value

    package init(_ name: String, _ value: Value) {
        self.name = name
        self.value = value
    }
}

/// A structure around the observer, for the sake of the task-local value.
package struct CredentialObservation: Sendable {
    package let observer: any CredentialObserver

    package init(_ observer: any CredentialObserver) { self.observer = observer }

    @TaskLocal package static var current: CredentialObservation?
}

extension CredentialSession.Credential {
    /// The credential in a trace.
    package var arguments: [CredentialArgument] {
        var list: [CredentialArgument] = [.init("identifier", .text(identifier.uuidString)), .init("name", .text(name))]
        switch state {
        case .installationPending: list.append(.init("state", .text("installationPending")))
        case .installationFailed: list.append(.init("state", .text("installationFailed")))
        case .installed(let instances):
            list.append(.init("state", .text("installed")))
            list.append(.init("instances", .list(instances.map { [.init("instanceAID", .octets(Array($0.instanceAID)))] })))
        }
        return list
    }
}
