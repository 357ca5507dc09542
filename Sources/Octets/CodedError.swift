// SPDX-License-Identifier: MIT

/// An error whose kind is its code: two are equal when their codes are, whatever they say beside it.
public protocol CodedError: Error, Equatable, CustomStringConvertible {
    associatedtype Code: Equatable, Sendable

    var code: Code { get }
}

extension CodedError {
    public static func == (left: Self, right: Self) -> Bool { left.code == right.code }
}

/// An error that says in words what was expected and what came.
public protocol DetailedError: CodedError {
    /// What was expected and what came, for people.
    var detail: String { get }
}

extension DetailedError {
    public var description: String { detail }
}
