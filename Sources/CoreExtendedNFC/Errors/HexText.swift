// SPDX-License-Identifier: MIT

import Octets

/// Upper-case hexadecimal digits without spaces.
func hexText(_ octets: some Sequence<UInt8>) -> String { Hex.encode(octets) }

/// A status word in four hexadecimal digits.
func hexText(_ statusWord: UInt16) -> String {
    Hex.encode([UInt8(truncatingIfNeeded: statusWord >> 8), UInt8(truncatingIfNeeded: statusWord)])
}
