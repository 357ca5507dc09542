// SPDX-License-Identifier: MIT

/// The second status octet of a DESFire answer `91xx` (NXP MF3DHx3 short data sheet).
public enum DESFireStatus: UInt8, Sendable, Hashable, Codable, CaseIterable {
    case operationOK = 0x00
    case noChanges = 0x0C
    case outOfMemory = 0x0E
    case illegalCommand = 0x1C
    case integrityError = 0x1E
    case noSuchKey = 0x40
    case lengthError = 0x7E
    case permissionDenied = 0x9D
    case parameterError = 0x9E
    case applicationNotFound = 0xA0
    case applicationIntegrityError = 0xA1
    case authenticationDelay = 0xAD
    case authenticationError = 0xAE
    case additionalFrame = 0xAF
    case boundaryError = 0xBE
    case cardIntegrityError = 0xC1
    case commandAborted = 0xCA
    case cardDisabled = 0xCD
    case countError = 0xCE
    case duplicate = 0xDE
    case eepromError = 0xEE
    case fileNotFound = 0xF0
    case fileIntegrityError = 0xF1

    /// The status in plain words.
    public var text: String {
        switch self {
        case .operationOK: "done"
        case .noChanges: "nothing to change"
        case .outOfMemory: "out of memory"
        case .illegalCommand: "unknown command"
        case .integrityError: "integrity error"
        case .noSuchKey: "no such key"
        case .lengthError: "wrong length"
        case .permissionDenied: "permission denied"
        case .parameterError: "wrong parameter"
        case .applicationNotFound: "application not found"
        case .applicationIntegrityError: "application damaged"
        case .authenticationDelay: "authentication delayed"
        case .authenticationError: "authentication error"
        case .additionalFrame: "another frame follows"
        case .boundaryError: "outside the file"
        case .cardIntegrityError: "card damaged"
        case .commandAborted: "the command before was not finished"
        case .cardDisabled: "card disabled"
        case .countError: "too many applications or files"
        case .duplicate: "it is there already"
        case .eepromError: "memory error"
        case .fileNotFound: "file not found"
        case .fileIntegrityError: "file damaged"
        }
    }
}
