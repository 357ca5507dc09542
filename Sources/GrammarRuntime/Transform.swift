// SPDX-License-Identifier: MIT

/// A pure function that a grammar calls by name: a cipher, a MAC, a key derivation, a checksum.
public struct Transform: Sendable {
    public enum Kind: String, Sendable { case key, octets }

    public let name: String
    /// What each argument is. Numbers arrive as octets of the width that the grammar declares, most significant first.
    public let parameters: [Kind]
    public let result: Kind
    /// The transform that undoes this one in its last argument, the others being equal.
    public let inverse: String?
    let function: @Sendable ([[UInt8]]) throws(TransformError) -> [UInt8]

    public init(
        _ name: String, _ parameters: [Kind], _ result: Kind, inverse: String? = nil,
        _ function: @escaping @Sendable ([[UInt8]]) throws(TransformError) -> [UInt8]
    ) {
        self.name = name
        self.parameters = parameters
        self.result = result
        self.inverse = inverse
        self.function = function
    }

    /// The result for `arguments`.
    ///
    /// - Throws: ``TransformError`` when their number or a length is wrong, or padding is not right.
    public func callAsFunction(_ arguments: [[UInt8]]) throws(TransformError) -> [UInt8] {
        guard arguments.count == parameters.count else {
            throw TransformError(detail: "\(name) takes \(parameters.count) values, not \(arguments.count)")
        }
        return try function(arguments)
    }
}

/// Why a transform gave no result.
public struct TransformError: Error, Sendable, CustomStringConvertible {
    public let detail: String
    public init(detail: String) { self.detail = detail }
    public var description: String { detail }
}

/// Where a program finds its transforms.
public protocol TransformRegistry: Sendable {
    func transform(named name: String) -> Transform?
}
