// SPDX-License-Identifier: MIT

extension CoreExtendedNFC {
    /// The MRZ key of a document (ICAO 9303-11 9.7.2), for ``readPassport(transport:mrzKey:dataGroups:performActiveAuth:trustAnchorsDER:onProgress:)``.
    ///
    /// Never fails: characters that no machine readable zone has stay as they are, and no chip will take such a key.
    /// ``MRZKey`` says what is wrong with its parts.
    ///
    /// - Parameters:
    ///   - documentNumber: filled up with `<` to nine characters; longer ones stay whole.
    ///   - dateOfBirth: `YYMMDD`.
    ///   - dateOfExpiry: `YYMMDD`.
    public static func computeMRZKey(documentNumber: String, dateOfBirth: String, dateOfExpiry: String) -> String {
        if let key = try? MRZKey(documentNumber: documentNumber, dateOfBirth: dateOfBirth, dateOfExpiry: dateOfExpiry) {
            return key.value
        }
        let number = documentNumber + String(repeating: "<", count: max(0, 9 - documentNumber.utf8.count))
        return [number, dateOfBirth, dateOfExpiry].map { "\($0)\(mrzCheckDigit($0))" }.joined()
    }

    /// The check digit of a field of a machine readable zone (ICAO 9303-3 4.9).
    public static func mrzCheckDigit(_ input: String) -> Character {
        Character(Unicode.Scalar(CheckDigit.over(input.utf8)))
    }
}
