// SPDX-License-Identifier: MIT

public import Octets

/// Why a virtual card could not be made from what was asked for. Equality is on the code.
public struct VirtualCardError: DetailedError {
    public enum Code: String, Sendable {
        case unknownKind
        case unknownOption
        /// An option given twice.
        case repeatedOption
        /// An option without the value that it needs.
        case missingValue
        /// A value that the option cannot have.
        case badValue
        /// A `%` that is not followed by two hexadecimal digits, or octets that are not UTF-8.
        case badEscape
        /// Text that is not a fault plan.
        case badFault
        /// An argument that is no option.
        case strayArgument
        /// A file of options that is not there or is no text.
        case unreadableFile
        /// libcrypto failed while the card's data was made.
        case cryptography
    }

    public let code: Code
    /// What is wrong, for people.
    public let detail: String
    /// The option at fault, without dashes.
    public let option: String?
    /// The line of a file of options, from 1.
    public let line: Int?
    /// Where in that line, in the option's value, or in the text of the reference, counted in characters from 1.
    public let column: Int?

    public init(_ code: Code, _ detail: String, option: String? = nil, line: Int? = nil, column: Int? = nil) {
        self.code = code
        self.detail = detail
        self.option = option
        self.line = line
        self.column = column
    }
}

extension VirtualCardError {
    /// The element of `known` that `word` was most likely meant to be: at most a third of its letters differ.
    static func nearest(to word: String, in known: [String]) -> String? {
        guard !word.isEmpty else { return nil }
        let limit = max(1, word.count / 3)
        return known.map { ($0, EditDistance.between(word, $0)) }.filter { $0.1 <= limit || $0.0.hasPrefix(word) }.min {
            $0.1 < $1.1
        }?.0
    }
}
