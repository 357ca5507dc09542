// SPDX-License-Identifier: MIT

import Octets

/// A CMS SignedData (RFC 5652 5) with its content inside: EF.SOD, EF.CardSecurity, master lists.
public struct SignedData: Sendable, Equatable {
    /// The ContentInfo, with lengths in the definite form.
    public let der: [UInt8]
    /// Dotted decimal.
    public let contentType: String
    /// What is signed.
    public let content: [UInt8]
    /// Where the content begins in the file that was parsed; nil when it lies there in pieces.
    public let contentOffset: Int?
    public let certificates: [Certificate]
    /// What is wrong with certificates inside that could not be understood.
    public let certificateFaults: [DataObjectError]
    public let signers: [Signer]

    /// Reads a ContentInfo. Lengths in the indefinite form, which some issuers write, are turned into definite ones before.
    ///
    /// - Throws: ``DataObjectError``; nothing is verified here.
    public init(_ object: DataObject) throws(DataObjectError) {
        let contentInfo = try object.elements(of: 0x30)
        let type = try contentInfo.element(0, of: object)
        guard try type.objectIdentifier() == Self.signedData else { throw type.fault(.value, "no signed data") }
        let message = try contentInfo.element(1, of: object, tag: 0xA0).inner(tag: 0x30)
        let parts = try message.children()
        _ = try parts.element(1, of: message, tag: 0x31)
        let encapsulated = try parts.element(2, of: message, tag: 0x30)
        let fields = try encapsulated.children()
        contentType = try fields.element(0, of: encapsulated).objectIdentifier()
        let octets = try fields.element(1, of: encapsulated, tag: 0xA0).inner()
        switch octets.tag {
        case 0x04:
            content = Array(octets.value)
            contentOffset = octets.value.startIndex
        case 0x24:
            var joined: [UInt8] = []
            for piece in try octets.children() {
                try piece.require(0x04)
                joined += piece.value
            }
            content = joined
            contentOffset = nil
        default: throw octets.fault(.tag, "tag \(DataObject.hex(octets.tag)) where octets were expected")
        }
        var certificates: [Certificate] = []
        var faults: [DataObjectError] = []
        for item in try parts.first(0xA0)?.children() ?? [] where item.tag == 0x30 {
            do { certificates.append(try Certificate(item)) } catch { faults.append(error) }
        }
        self.certificates = certificates
        certificateFaults = faults
        var signers: [Signer] = []
        // The last SET; revocation lists ([1]) may stand before it. In a message of certificates alone it is empty.
        if let infos = parts.last, infos.tag == 0x31, parts.count > 3 {
            for info in try infos.children() { signers.append(try Signer(info)) }
        }
        self.signers = signers
        der = Array(object.octets)
    }

    /// - Throws: ``DataObjectError``.
    public init(der: [UInt8]) throws(DataObjectError) { try self.init(try DataObject(try DER.definite(der))) }

    /// The certificate among ``certificates`` that `signer` names, or nil.
    public func certificate(of signer: Signer) -> Certificate? {
        certificates.first { signer.isIdentified(by: $0) }
    }

    static let signedData = "1.2.840.113549.1.7.2"
}

extension SignedData {
    /// One SignerInfo (RFC 5652 5.3).
    public struct Signer: Sendable, Equatable {
        public enum Identifier: Sendable, Equatable {
            case issuer(DistinguishedName, serialNumber: [UInt8])
            case subjectKeyIdentifier([UInt8])
        }

        public let identifier: Identifier
        /// Dotted decimal.
        public let digestAlgorithm: String
        /// Nil when it is none of SHA-1 and SHA-2.
        public let digest: Digest?
        /// Dotted decimal.
        public let signatureAlgorithm: String
        /// Nil for an algorithm that ICAO 9303-12 does not allow.
        public let scheme: SignatureScheme?
        public let signature: [UInt8]
        /// The signed attributes as they are signed: a SET OF, as sent.
        public let signedAttributes: [UInt8]?
        /// Dotted decimal, of the attribute.
        public let contentType: String?
        public let messageDigest: [UInt8]?
        public let signingTime: CertificateTime?

        init(_ object: DataObject) throws(DataObjectError) {
            let parts = try object.elements(of: 0x30)
            let signer = try parts.element(1, of: object)
            if signer.tag == 0x80 {
                identifier = .subjectKeyIdentifier(Array(signer.value))
            } else {
                let fields = try signer.elements(of: 0x30)
                identifier = .issuer(
                    try DistinguishedName(try fields.element(0, of: signer)),
                    serialNumber: Array(try fields.element(1, of: signer, tag: 0x02).value))
            }
            let hash = try parts.element(2, of: object, tag: 0x30)
            digestAlgorithm = try hash.children().element(0, of: hash).objectIdentifier()
            digest = Digest(objectIdentifier: digestAlgorithm)
            let attributes = parts.count > 3 && parts[3].tag == 0xA0 ? parts[3] : nil
            let next = attributes == nil ? 3 : 4
            let algorithm = try parts.element(next, of: object, tag: 0x30)
            signatureAlgorithm = try algorithm.children().element(0, of: algorithm).objectIdentifier()
            scheme = try? SignatureScheme(algorithm: algorithm, digest: digest)
            signature = Array(try parts.element(next + 1, of: object, tag: 0x04).value)

            // Signed as a SET OF in place of the implicit tag, not sorted again (5.4).
            signedAttributes = attributes.map { [0x31] + $0.octets.dropFirst() }
            func value(_ identifier: String) throws(DataObjectError) -> DataObject? {
                var found: DataObject?
                for attribute in try attributes?.children() ?? [] {
                    let fields = try attribute.elements(of: 0x30)
                    guard try fields.element(0, of: attribute).objectIdentifier() == identifier else { continue }
                    guard found == nil else { throw attribute.fault(.value, "the attribute \(identifier) stands there twice") }
                    found = try fields.element(1, of: attribute, tag: 0x31).inner()
                }
                return found
            }
            contentType = try value("1.2.840.113549.1.9.3")?.objectIdentifier()
            messageDigest = try value("1.2.840.113549.1.9.4").map { Array($0.value) }
            signingTime = try value("1.2.840.113549.1.9.5").map { object throws(DataObjectError) in try CertificateTime(object) }
        }

        /// Whether the certificate is the one that this signer names.
        public func isIdentified(by certificate: Certificate) -> Bool {
            switch identifier {
            case .issuer(let name, let serialNumber): certificate.issuer == name && certificate.serialNumber == serialNumber
            case .subjectKeyIdentifier(let identifier): certificate.extensions.subjectKeyIdentifier == identifier
            }
        }
    }
}

extension DER {
    /// `octets` with every indefinite length (X.690 8.1.3.6) made a definite one; as they are when there is none at the top.
    ///
    /// - Throws: ``DataObjectError`` at the octet of the given octets that is at fault.
    static func definite(_ octets: [UInt8]) throws(DataObjectError) -> [UInt8] {
        guard octets.count > 1, octets[1] == 0x80 else { return octets }
        var index = 0
        return try definite(octets, &index, depth: 0)
    }

    private static func definite(_ octets: [UInt8], _ index: inout Int, depth: Int) throws(DataObjectError) -> [UInt8] {
        func fault(_ detail: String) -> DataObjectError { DataObjectError(.encoding, path: [], offset: index, detail) }
        guard depth < 32 else { throw fault("more than 32 objects inside each other") }
        guard index + 1 < octets.count else { throw fault("the octets end inside a tag or length") }
        guard octets[index + 1] == 0x80, octets[index] & 0x20 != 0 else {
            do {
                let object = try TLV.first(in: octets[index...])
                let end = object.value.endIndex
                defer { index = end }
                return Array(octets[index..<end])
            } catch { throw DataObjectError(.encoding, path: [], offset: index + error.offset, "\(error.code)") }
        }
        let tag = octets[index]
        index += 2
        var inner: [UInt8] = []
        while true {
            guard index + 1 < octets.count else { throw fault("an indefinite length that does not end") }
            if octets[index] == 0, octets[index + 1] == 0 { break }
            inner += try definite(octets, &index, depth: depth + 1)
        }
        index += 2
        return [tag] + TLV.lengthOctets(inner.count) + inner
    }
}
