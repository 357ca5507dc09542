// SPDX-License-Identifier: MIT

import CardCrypto
import TagTransport

extension PassportCard: CardKeyHolding {
    package var cardKeys: [(name: String, octets: [UInt8])] {
        let pairs =
            configuration.chipKeys.map(\.pair) + configuration.mappingKeys.sorted { $0.key < $1.key }.map(\.value)
        var keys = pairs.map { (name: "chipAuthentication.chipKey", octets: $0.privateKey) }
        if let octets = try? configuration.activeAuthentication?.key.pkcs8() {
            keys.append((name: "activeAuthentication.chipKey", octets: octets))
        }
        return keys
    }
}
