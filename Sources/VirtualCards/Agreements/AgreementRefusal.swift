// SPDX-License-Identifier: MIT

/// Why the card's end of a key agreement did not go on: what a card says then.
package struct AgreementRefusal: Error, Sendable, Equatable {
    /// SW1-SW2.
    package let status: [UInt8]

    init(_ status: StatusWord) { self.status = status.octets }
    init(_ refusal: DESFireRefusal) { status = [0x91, refusal.rawValue] }
}
