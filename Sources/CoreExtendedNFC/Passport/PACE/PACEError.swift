// SPDX-License-Identifier: MIT

public import Octets

/// Why PACE did not come to its end (ICAO 9303-11 4.4). Equality is on the code.
public struct PACEError: DetailedError {
    public enum Code: Sendable, Hashable {
        // MARK: The card's side

        /// MSE:Set AT was refused.
        case selectionRefused(UInt16)
        /// A GENERAL AUTHENTICATE was refused; steps count from 1, the encrypted nonce, to 4, the tokens.
        case stepRefused(step: Int, UInt16)
        /// The card says that the password is wrong: `6300` or `63Cx` to the last step.
        case passwordRefused(UInt16)
        /// The password is blocked: `63C0` or `6983`.
        case passwordBlocked(UInt16)
        /// An answer that is not what the step has to bring.
        case answer(step: Int)
        /// A public key that must not be used, or one's own sent back.
        case publicKey
        /// The card does not know the password: its token is wrong.
        case tokenWrong
        /// The proof of chip authentication mapping cannot be decrypted.
        case chipData

        // MARK: The program's side

        case outOfOrder
        case cryptography
    }

    public let code: Code
    public let detail: String

    init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// Whether another try with another way of PACE has the same end.
    var isAboutPassword: Bool {
        switch code {
        case .passwordRefused, .passwordBlocked, .tokenWrong: true
        default: false
        }
    }
}
