// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Flows

/// A flow's failure on one line: whose fault, then what.
enum FailureText {
    /// - Parameter lost: the exchange that got no answer.
    static func line(_ failure: FlowFailure, lost: UInt64?) -> String {
        let place = lost.map { " in exchange \($0)" } ?? ""
        let text: String
        switch failure.case {
        case "tagConnectionLost": text = "the card was removed\(place)"
        case "tagReset": text = "another program reset the card\(place)"
        case "timeout", "sessionTimeout": text = "no answer in the time allowed\(place)"
        case "readerUnavailable", "nfcNotAvailable": text = "the reader went away\(place)"
        case "cancelled": text = "interrupted\(place)"
        default: text = failure.detail.isEmpty ? failure.case : failure.detail
        }
        return "\(failure.blame.rawValue): \(text)"
    }
}
