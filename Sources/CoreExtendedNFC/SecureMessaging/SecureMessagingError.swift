// SPDX-License-Identifier: MIT

public import Octets

/// Why a command could not be protected or an answer not be trusted. Equality is on the code.
public struct SecureMessagingError: DetailedError {
    public enum Code: Sendable, Hashable {
        // MARK: The program's fault

        /// A command was protected while the answer to the one before had not come.
        case answerOutstanding
        /// An answer came although no command is under way.
        case noCommand
        /// The channel ended before; keys have to be agreed on again.
        case ended
        /// This class octet cannot carry secure messaging (ISO/IEC 7816-4 5.4.1).
        case classOctet
        /// The protected command does not fit a command APDU.
        case commandLength
        /// Keys and counter do not fit the cipher.
        case keyLength

        // MARK: The card's fault

        /// A status word without secure messaging: the card did not take the command (ICAO 9303-11 9.8.3). The counter
        /// stands where it stood before the command.
        case bareStatusWord(UInt16)
        /// The answer is no run of data objects, or holds one twice or out of order.
        case objects
        /// No DO 8E, or not of eight octets.
        case macMissing
        case macWrong
        /// No DO 99, or not of two octets.
        case statusMissing
        /// The cryptogram is not whole blocks, or has a wrong padding indicator.
        case cryptogram
        /// The decrypted octets do not end with padding method 2 of ISO/IEC 9797-1.
        case padding
    }

    public let code: Code
    /// What was expected and what came, for people.
    public let detail: String

    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// Whether the channel can still carry a command after this error.
    public var leavesChannelOpen: Bool {
        switch code {
        case .bareStatusWord, .answerOutstanding, .classOctet, .commandLength: true
        default: false
        }
    }
}
