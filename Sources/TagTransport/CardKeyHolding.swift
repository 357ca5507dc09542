// SPDX-License-Identifier: MIT

/// What can tell a card's own secret keys: a virtual card. A recording keeps them among its secrets, so that the card can be played
/// again with fresh random numbers on both sides.
package protocol CardKeyHolding {
    /// Keys by the grammars' names: `chipAuthentication.chipKey`, a private key, most significant octet first;
    /// `activeAuthentication.chipKey`, PKCS#8.
    var cardKeys: [(name: String, octets: [UInt8])] { get }
}
