// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Flows
import TraceFile

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

    /// What a person should look at when the chip took the password for wrong; nil for other failures.
    static func hint(_ failure: FlowFailure, argumentsJSON: String) -> String? {
        let isAboutPassword = ["refused the key", "does not accept"].contains { failure.detail.contains($0) }
        guard isAboutPassword, let arguments = try? JSONValue.parse(argumentsJSON) else { return nil }
        guard let key = arguments["mrzKey"]?.stringValue else {
            return arguments["can"] == nil ? nil : "the CAN has six digits and stands on the data page; is it this document's?"
        }
        guard (try? MRZKey(key))?.checkDigitsHold == true else {
            return "checked  a check digit in the key is wrong: --number, --birth and --expiry make it"
        }
        return "checked  check digits are right; O and 0 in the number? 9 characters with \"<\"?"
    }
}
