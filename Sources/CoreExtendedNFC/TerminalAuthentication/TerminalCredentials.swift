// SPDX-License-Identifier: MIT

public import CardCrypto
public import FoundationEssentials

/// What a terminal proves its rights with: a chain of CV certificates and the private key of the last.
public struct TerminalCredentials: Sendable {
    /// In the order in which the chip gets them: links of the authority, the document verifier's, the terminal's.
    public let certificates: [CVCertificate]
    let key: SigningKey
    /// What the terminal's key signs with, as its certificate says.
    let scheme: SignatureScheme

    /// - Parameters:
    ///   - certificatesDER: CV certificates (`7F21`), in any order; that of the authority that the chip knows may be among them.
    ///   - privateKeyDER: PKCS#8, not encrypted, or a bare RSA or EC key.
    /// - Throws: ``LDSError`` for a certificate that cannot be read, with its place in the list; `CryptoError` for a key that cannot be
    ///   read or that is not that of the terminal's certificate.
    public init(certificatesDER: [Data], privateKeyDER: Data) throws {
        var certificates: [CVCertificate] = []
        for (index, octets) in certificatesDER.enumerated() {
            certificates.append(
                try understanding("CV certificate \(index + 1)") { () throws(DataObjectError) in try CVCertificate(Array(octets))
                })
        }
        try self.init(certificates, key: try SigningKey(der: Array(privateKeyDER)))
    }

    init(_ certificates: [CVCertificate], key: SigningKey) throws(CryptoError) {
        guard let terminal = certificates.first(where: { $0.authorization?.role == .terminal }) else {
            throw CryptoError(code: .certificate, detail: "no certificate of a terminal is among the \(certificates.count) given")
        }
        guard let scheme = terminal.publicKey.scheme else {
            throw CryptoError(code: .algorithm, detail: "the terminal's certificate is for \(terminal.publicKey.algorithm)")
        }
        guard Self.belongs(key.publicKey, to: terminal.publicKey) else {
            throw CryptoError(code: .publicKey, detail: "the private key is not that of the terminal's certificate")
        }
        // From the terminal upwards, each step to the certificate whose holder the last one refers to.
        var chain = [terminal]
        while let reference = chain.first?.authorityReference,
            let next = certificates.first(where: { $0.holderReference == reference && !chain.contains($0) })
        {
            chain.insert(next, at: 0)
        }
        self.certificates = chain
        self.key = key
        self.scheme = scheme
    }

    /// The reference of the terminal's own certificate.
    var holderReference: [UInt8] { certificates.last?.holderReference ?? [] }

    /// The certificates that a chip needs which has the key of one of `references`; nil when no way begins there.
    func chain(from references: [[UInt8]]) -> [CVCertificate]? {
        // The shortest way: the last certificate that refers to a key that the chip has.
        guard let start = certificates.lastIndex(where: { $0.authorityReference.map(references.contains) == true }) else {
            return nil
        }
        return Array(certificates[start...])
    }

    private static func belongs(_ key: PublicKey, to certificate: CVPublicKey) -> Bool {
        if let known = certificate.key { return known == key }
        return certificate.hasPoint(of: key)
    }
}
