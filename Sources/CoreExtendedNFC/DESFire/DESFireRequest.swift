// SPDX-License-Identifier: MIT

public import Octets

/// How the data of a file travels.
public enum DESFireCommunicationMode: String, Sendable, Hashable, Codable, CaseIterable {
    case plain
    case maced
    case enciphered

    /// The value in file settings. `02` is read as plain.
    public init(fileByte: UInt8) {
        switch fileByte & 0x03 {
        case 1: self = .maced
        case 3: self = .enciphered
        default: self = .plain
        }
    }

    public var fileByte: UInt8 {
        switch self {
        case .plain: 0
        case .maced: 1
        case .enciphered: 3
        }
    }
}

/// A command before a channel protects it.
struct DESFireRequest: Sendable {
    /// What decides the protection.
    enum Protection: Sendable, Hashable {
        /// Management: plain in D40, with a MAC of the chain in EV1, with MACs in EV2.
        case management
        /// Data of a file.
        case file(DESFireCommunicationMode)
        /// Keys, settings and the UID: enciphered wherever there is a session.
        case secret
        /// No protection in any channel, as NTAG 424 DNA has it for some.
        case none
    }

    var code: DESFireCommandCode
    /// Parameters that are never enciphered.
    var header: [UInt8] = []
    var data: [UInt8] = []
    var protection = Protection.management
    /// Whether the answer of a done command has data.
    var answers = false
    /// Octets of data in the answer where the caller knows them.
    var answerLength: Int?
    /// A second value that is covered by a checksum of its own: the new key when another key than the one in use is changed.
    var checked: [UInt8]?
    /// Whether the card ends the session by doing this, so that its answer has no MAC.
    var endsSession = false

    /// Whether the data goes out with a MAC behind it in D40 and EV1: commands that write into files.
    var writes: Bool {
        if case .file = protection { return !data.isEmpty }
        return false
    }
}

/// Why a secure channel cannot go on. Equality is on the code.
public struct DESFireChannelError: DetailedError {
    public enum Code: String, Sendable {
        /// The answer is too short to have its MAC.
        case macMissing
        case macWrong
        /// A cryptogram that is not whole blocks, or none where one must be.
        case cryptogramLength
        /// What was inside a cryptogram does not fit its checksum or padding.
        case checksumWrong
        /// Data in an answer that has none.
        case surplusData
        /// The data inside has another length than was asked for.
        case dataLength
        /// The session has counted its last command.
        case counterExhausted
        /// An authentication step of the wrong length.
        case handshakeLength
        /// The card did not prove that it knows the key.
        case proofWrong
        /// libcrypto refused.
        case cryptography
    }

    public let code: Code
    public let detail: String

    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
