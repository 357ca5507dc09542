// SPDX-License-Identifier: MIT

import Octets

/// The name of an issuer or subject (RFC 5280 4.1.2.4). Names are equal when they differ in nothing but string type, case and spaces
/// (RFC 5280 7.1): issuers write the same name in several ways.
public struct DistinguishedName: Sendable, Hashable, CustomStringConvertible {
    /// The Name as it stands.
    public let der: [UInt8]
    /// `C=UT, O=Utopia, CN=CSCA`.
    public let description: String
    private let canonical: [[String]]

    public init(_ object: DataObject) throws(DataObjectError) {
        der = Array(object.octets)
        var canonical: [[String]] = []
        var texts: [String] = []
        for relative in try object.elements(of: 0x30) {
            var attributes: [String] = []
            for attribute in try relative.elements(of: 0x31) {
                let parts = try attribute.elements(of: 0x30)
                let identifier = try parts.element(0, of: attribute).objectIdentifier()
                let value = Self.text(try parts.element(1, of: attribute))
                texts.append("\(Self.shortNames.first { $0.identifier == identifier }?.name ?? identifier)=\(value)")
                let folded = value.lowercased().split(whereSeparator: \.isWhitespace).joined(separator: " ")
                attributes.append("\(identifier)=\(folded)")
            }
            canonical.append(attributes.sorted())
        }
        self.canonical = canonical
        description = texts.joined(separator: ", ")
    }

    /// The name of `attributes` by short name, for instance `("C", "UT")`: countries in PrintableString, the rest in UTF8String.
    ///
    /// - Throws: ``CryptoError`` with the code `certificate` for an unknown short name.
    public static func encode(_ attributes: [(String, String)]) throws(CryptoError) -> [UInt8] {
        var relatives: [UInt8] = []
        for (name, value) in attributes {
            guard let known = shortNames.first(where: { $0.name == name }) else {
                throw CryptoError(code: .certificate, detail: "no attribute of names is called '\(name)'")
            }
            let text = TLV.encode(name == "C" ? 0x13 : 0x0C, Array(value.utf8))
            relatives += DER.set([DER.sequence(try DER.objectIdentifier(known.identifier), text)])
        }
        return DER.sequence(relatives)
    }

    public static func == (left: Self, right: Self) -> Bool { left.canonical == right.canonical }
    public func hash(into hasher: inout Hasher) { hasher.combine(canonical) }

    private static func text(_ object: DataObject) -> String {
        switch object.tag {
        // BMPString: UTF-16, most significant octet first.
        case 0x1E:
            let octets = Array(object.value)
            let units = stride(from: 0, to: octets.count - octets.count % 2, by: 2).map {
                UInt16(octets[$0]) << 8 | UInt16(octets[$0 + 1])
            }
            return String(decoding: units, as: UTF16.self)
        // TeletexString, in practice ISO 8859-1.
        case 0x14: return String(String.UnicodeScalarView(object.value.map { Unicode.Scalar($0) }))
        default: return String(decoding: object.value, as: UTF8.self)
        }
    }

    private static let shortNames: [(name: String, identifier: String)] = [
        ("C", "2.5.4.6"), ("O", "2.5.4.10"), ("OU", "2.5.4.11"), ("CN", "2.5.4.3"), ("serialNumber", "2.5.4.5"),
        ("L", "2.5.4.7"), ("ST", "2.5.4.8"), ("emailAddress", "1.2.840.113549.1.9.1"),
    ]
}
