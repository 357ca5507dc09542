// SPDX-License-Identifier: MIT

import CardCrypto

/// What opens a travel document's chip.
public enum PassportAccess: Sendable, Hashable {
    /// Number, birth and expiry with their check digits, as ``MRZKey`` makes them: for PACE, and for Basic Access Control where the chip
    /// has no PACE or it fails.
    case mrz(String)
    /// The card access number that is printed on the document. PACE only.
    case can(String)
    /// A number that the holder knows. PACE only; a chip counts wrong tries.
    case pin(String)
    /// What unblocks the PIN. PACE only.
    case puk(String)

    /// `MRZ`, `CAN`, `PIN`, `PUK`.
    public var name: String {
        switch self {
        case .mrz: "MRZ"
        case .can: "CAN"
        case .pin: "PIN"
        case .puk: "PUK"
        }
    }

    /// The password itself.
    var text: String {
        switch self {
        case .mrz(let text), .can(let text), .pin(let text), .puk(let text): text
        }
    }

    /// The reference in MSE:Set AT (ICAO 9303-11 4.4.4.1, BSI TR-03110 part 3, B.2).
    var reference: UInt8 {
        switch self {
        case .mrz: 0x01
        case .can: 0x02
        case .pin: 0x03
        case .puk: 0x04
        }
    }

    /// Whether the chip counts wrong tries.
    var isCounted: Bool {
        switch self {
        case .mrz, .can: false
        case .pin, .puk: true
        }
    }

    /// f(π) of ICAO 9303-11 4.4.4 and 9.7.3: the whole SHA-1 of the MRZ information, or the characters (ISO/IEC 8859-1).
    ///
    /// - Throws: `CryptoError`, also for characters that ISO/IEC 8859-1 does not have.
    func secret() throws(CryptoError) -> [UInt8] {
        if case .mrz(let key) = self { return try Digest.sha1.hash(Array(key.utf8)) }
        var octets: [UInt8] = []
        for scalar in text.unicodeScalars {
            guard let octet = UInt8(exactly: scalar.value) else {
                throw CryptoError(code: .encoding, detail: "a \(name) has characters of ISO/IEC 8859-1 only")
            }
            octets.append(octet)
        }
        return octets
    }
}

extension PassportAccess: CustomStringConvertible, CustomReflectable {
    public var description: String { name }
    /// The password stays out of every rendering.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
