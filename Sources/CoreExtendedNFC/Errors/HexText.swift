// SPDX-License-Identifier: MIT

import Octets

/// Upper-case hexadecimal digits without spaces.
func hexText(_ octets: some Sequence<UInt8>) -> String { Hex.encode(octets) }
