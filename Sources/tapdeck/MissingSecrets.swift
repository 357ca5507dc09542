// SPDX-License-Identifier: MIT

import TraceDecoding
import TraceFile

/// Which lines of a secrets file are missing where messages stayed sealed.
struct MissingSecrets: Sendable {
    /// How the keys of a session were agreed on, as far as its messages tell.
    private enum Agreement: Int, Sendable {
        case unknown
        case basicAccess
        case pace

        var lines: String {
            switch self {
            case .unknown: "secureMessaging.enc HEX, secureMessaging.mac HEX and secureMessaging.ssc HEX"
            case .basicAccess: "mrz KEY, or bac.seed HEX"
            // The password alone opens nothing: that is what PACE is for.
            case .pace: "pace.ksEnc HEX and pace.ksMac HEX"
            }
        }
    }

    private var agreement = Agreement.unknown
    private var first: [Agreement: UInt64] = [:]

    /// Looks at a row; one that is sealed counts where it is shown.
    mutating func see(_ row: DecodedRow, isShown: Bool) {
        if row.message == "BAC" { agreement = .basicAccess }
        if row.message.hasPrefix("PACE_") { agreement = .pace }
        guard isShown, row.isProtected, row.opening == .sealed, let packet = row.row.packetID else { return }
        if first[agreement] == nil { first[agreement] = packet }
    }

    /// `sealed from exchange 9 on: the secrets lack the line mrz KEY, or bac.seed HEX`.
    var notes: [String] {
        first.sorted { $0.value < $1.value }.map { "sealed from exchange \($0.value) on: the secrets lack \($0.key.lines)" }
    }
}
