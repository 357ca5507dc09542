// SPDX-License-Identifier: MIT

import CardCrypto
public import Octets

/// Why a file of a travel document cannot be understood, and where. Equality is on the code.
public struct LDSError: CodedError {
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
    /// `DG11`, `EF.SOD`.
    public let file: String
    /// The tags from the file's data object down to the one at fault: `77/30/A0`. Empty at the file itself.
    public let path: String
    /// The octet at fault, from the start of the file.
    public let offset: Int
    private let reason: String

    public init(_ code: Code, file: String = "", path: String = "", offset: Int = 0, _ reason: String = "") {
        self.code = code
        self.file = file
        self.path = path
        self.offset = offset
        self.reason = reason
    }

    init(_ error: DataObjectError, in file: String) {
        let code: Code =
            switch error.code {
            case .encoding: .encoding
            case .tag: .tag
            case .missing: .missing
            case .value: .value
            }
        self.init(code, file: file, path: error.pathText, offset: error.offset, error.detail)
    }

    /// What is wrong and where: `DG11: a name that is no text, at octet 12 (6B/5F0E)`.
    public var detail: String { "\(file): \(reason), at octet \(offset)\(path.isEmpty ? "" : " (\(path))")" }

    public var description: String { detail }
}

/// Runs `body`, whose errors are about the file of this name.
func understanding<Result>(
    _ file: String, _ body: () throws(DataObjectError) -> Result
) throws(LDSError) -> Result {
    do { return try body() } catch { throw LDSError(error, in: file) }
}

/// The one data object of a file, checked for its tag; octets after it are filler.
func fileObject(_ octets: [UInt8], tag: UInt32) throws(DataObjectError) -> DataObject { try DataObject(octets, tag: tag) }
