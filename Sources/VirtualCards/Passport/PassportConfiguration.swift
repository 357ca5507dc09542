// SPDX-License-Identifier: MIT

import CardCrypto

/// What a virtual chip does that the standards do not want, or leave open; each was met in the field.
enum PassportQuirk: String, Sendable, Hashable, CaseIterable {
    /// READ BINARY for more than fits is a bare `6700`; the session and its counter stay as before the command.
    case refusesLe = "refuse-le"
    /// With one of the two others for reads: the bare answer ends the session.
    case losesSession = "lose-session"
    /// READ BINARY for more than fits is a bare `6Cxx` with what fits; the session stays as before the command.
    case tellsLe = "6C"
    /// Every refusal comes without secure messaging and ends the session.
    case dropsChannel = "drop"
    /// A read past a file's end is a bare `6B00` and ends the session.
    case strict
    /// EXTERNAL AUTHENTICATE with Le `00` in place of `28` is `6A88`.
    case exactLe = "exact-le"
    /// MSE:Set AT with a data object 84 is `6A80`.
    case no84 = "no-84"
    /// MSE:Set AT without a data object 84 is `6A88`.
    case needs84 = "needs-84"
    /// SELECT of the master file is `6700` with an identifier, `6A86` without.
    case noMasterFile = "no-mf"
    /// PACE ends with `6300` whatever the password.
    case neverPACE = "never-pace"
    /// After a failed PACE every command but SELECT is `6988` until the card is reset.
    case sulks
    /// The nonce of generic mapping has 32 octets.
    case longNonce = "nonce-32"
    /// DH public values have leading zeros up to the length of p.
    case paddedKeys = "pad-dh"
    /// Chip Authentication is refused with `6A80`.
    case noChipAuthentication = "no-ca"
    /// The answer to reset says nothing of lengths; EF.ATR/INFO in the master file does.
    case capabilitiesInFile = "atr-info"

    /// One line for a help text.
    var summary: String {
        switch self {
        case .refusesLe: "a read of more than --chunk is a bare 6700, the session goes on"
        case .tellsLe: "a read of more than --chunk is a bare 6Cxx, the session goes on"
        case .losesSession: "with refuse-le or 6C: the bare answer ends the session"
        case .dropsChannel: "a refusal comes bare and ends the session"
        case .strict: "a read past a file's end is a bare 6B00 and ends the session"
        case .exactLe: "EXTERNAL AUTHENTICATE with Le 00 is 6A88"
        case .no84: "MSE:Set AT with DO 84 is 6A80"
        case .needs84: "MSE:Set AT without DO 84 is 6A88"
        case .noMasterFile: "SELECT of the master file is refused"
        case .neverPACE: "PACE ends with 6300"
        case .sulks: "after a failed PACE 6988 until the card is reset"
        case .longNonce: "the nonce of PACE has 32 bytes"
        case .paddedKeys: "DH public values are padded to the length of p"
        case .noChipAuthentication: "Chip Authentication is refused"
        case .capabilitiesInFile: "lengths are told by EF.ATR/INFO, not by the ATR"
        }
    }
}

/// How a virtual chip can be opened and what it proves.
struct PassportConfiguration: Sendable {
    var profiles: [PACEProfile] = []
    /// The octets that a password's key is derived from: the whole SHA-1 of the MRZ information, the characters of the others.
    var passwords: [PassportPassword: [UInt8]] = [:]
    var allowsBasicAccess = true
    /// For Chip Authentication.
    var chipKeys: [ChipKey] = []
    /// For chip authentication mapping, by parameter number.
    var mappingKeys: [UInt8: KeyAgreementKeyPair] = [:]
    var activeAuthentication: PassportActiveAuthentication?
    /// What the chip knows of terminals' certificates; nil when it has no Terminal Authentication.
    var verifier: CVCertificateVerifier?
    /// The document number with its check digit, by which Terminal Authentication names the chip after Basic Access Control.
    var documentNumber: [UInt8] = []
    var quirks: Set<PassportQuirk> = []
    /// Told of each command in plain and its answer.
    var observer: (@Sendable (_ command: [UInt8], _ answer: [UInt8]) -> Void)?
    /// Milliseconds that each answer takes.
    var delay: UInt32 = 0

    /// The PIN can be tried this often (BSI TR-03110 part 2, 3.3).
    static let pinTries = 3
}
