// SPDX-License-Identifier: MIT

import Octets

/// Why a file of a travel document cannot be understood, and where. Equality is on the code.
public struct LDSError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Code: Sendable, Equatable {
        /// The octets are no BER-TLV or DER.
        case encoding
        /// Another tag than this file has.
        case tag
        /// A data object that must be there is not.
        case missing
        /// A value that its rules do not allow.
        case value
    }

    public let code: Code
    /// The octet at fault, from the start of the file or object that was parsed.
    public let offset: Int
    public let detail: String

    public init(_ code: Code, offset: Int = 0, _ detail: String = "") {
        self.code = code
        self.offset = offset
        self.detail = detail
    }

    init(_ error: TLVError, in name: String) { self.init(.encoding, offset: error.offset, "\(name): \(error)") }

    public static func == (left: Self, right: Self) -> Bool { left.code == right.code }

    public var description: String { detail }
}

/// The one data object of a file, checked for its tag. Octets after it are filler.
func fileObject(_ octets: [UInt8], tag: UInt32, in name: String) throws(LDSError) -> TLV {
    let object: TLV
    do { object = try TLV.first(in: octets[...]) } catch { throw LDSError(error, in: name) }
    guard object.tag == tag else {
        let found = String(object.tag, radix: 16, uppercase: true)
        throw LDSError(.tag, "\(name) begins with tag \(found), not \(String(tag, radix: 16, uppercase: true))")
    }
    return object
}

/// The data objects inside another.
func objects(in object: TLV, of name: String, filler: Bool = false) throws(LDSError) -> [TLV] {
    do { return try object.children(TLVRules(allowsFiller: filler)) } catch {
        throw LDSError(.encoding, offset: object.offset + object.headerLength + error.offset, "\(name): \(error)")
    }
}
