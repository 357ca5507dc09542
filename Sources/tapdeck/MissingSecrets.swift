// SPDX-License-Identifier: MIT

import TraceDecoding
import TraceFile

/// Which lines of a secrets file are missing where messages stayed sealed.
struct MissingSecrets: Sendable {
    /// How the keys of a session were agreed on, as far as its messages tell.
    private enum Agreement: Hashable, Sendable {
        case unknown
        case basicAccess
        case pace
        /// The application in hexadecimal, the key's number, and its type.
        case desfire(String, String, String)

        var lines: String {
            switch self {
            case .unknown: "secureMessaging.enc HEX, secureMessaging.mac HEX and secureMessaging.ssc HEX"
            case .basicAccess: "mrz KEY, or bac.seed HEX"
            // The password alone opens nothing: that is what PACE is for.
            case .pace: "pace.ksEnc HEX and pace.ksMac HEX"
            case .desfire(let application, let number, let type): "desfire aid \(application) key \(number) \(type) HEX"
            }
        }
    }

    private var agreement = Agreement.unknown
    private var first: [Agreement: UInt64] = [:]
    /// The application of a DESFire card that was selected last: the card itself at first.
    private var application = "000000"

    /// Looks at a row; one that is sealed counts where it is shown.
    mutating func see(_ row: DecodedRow, isShown: Bool) {
        if row.message == "BAC" { agreement = .basicAccess }
        if row.message.hasPrefix("PACE_") { agreement = .pace }
        seeDESFire(row)
        guard isShown, row.isProtected || isDESFire, row.opening == .sealed, let packet = row.row.packetID else { return }
        if first[agreement] == nil { first[agreement] = packet }
    }

    private var isDESFire: Bool { if case .desfire = agreement { true } else { false } }

    /// What the commands of a DESFire card say of the key in use: `SelectApplication 01F4A1`, `AuthenticateAES, key 1`.
    private mutating func seeDESFire(_ row: DecodedRow) {
        guard row.row.direction == .sent else { return }
        let words = row.summary.split(separator: " ")
        if words.count == 2, words[0] == "SelectApplication" { application = String(words[1]) }
        guard words.count == 3, words[1] == "key", words[0].hasPrefix("Authenticate") else { return }
        let type =
            switch words[0] {
            case "Authenticate,": "des|2k3des"
            case "AuthenticateISO,": "des|2k3des|3k3des"
            default: "aes"
            }
        agreement = .desfire(application, String(words[2]), type)
    }

    /// `sealed from exchange 9 on: the secrets lack the line mrz KEY, or bac.seed HEX`.
    var notes: [String] {
        first.sorted { $0.value < $1.value }.map { "sealed from exchange \($0.value) on: the secrets lack \($0.key.lines)" }
    }
}
