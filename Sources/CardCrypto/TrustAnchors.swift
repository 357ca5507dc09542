// SPDX-License-Identifier: MIT

/// The country signing certificates that somebody chose to trust.
public struct TrustAnchors: Sendable {
    public let certificates: [Certificate]

    public init(_ certificates: [Certificate]) {
        var seen: Set<[UInt8]> = []
        self.certificates = certificates.filter { seen.insert($0.der).inserted }
    }

    public var isEmpty: Bool { certificates.isEmpty }

    /// Whether a way leads from `certificate` to an anchor.
    ///
    /// - Parameter others: certificates that came along and may stand between: links between an authority's keys.
    public func verdict(on certificate: Certificate, others: [Certificate] = []) -> TrustVerdict {
        guard !isEmpty else { return .noAnchors }
        if certificates.contains(certificate) { return .trusted(path: [certificate]) }
        var state = Search(others: others.filter { $0 != certificate })
        if let path = path(from: [certificate], &state) { return .trusted(path: path) }
        return state.refusal ?? .unknownIssuer(certificate.issuer)
    }

    private struct Search {
        let others: [Certificate]
        var refusal: TrustVerdict?
        /// Signatures that may still be verified: names and links of a hostile file could form many ways.
        var budget = 64
    }

    private func path(from path: [Certificate], _ state: inout Search) -> [Certificate]? {
        guard path.count <= 5, let last = path.last else { return nil }
        for candidate in certificates + state.others where last.names(candidate) && !path.contains(candidate) {
            guard state.budget > 0 else { return nil }
            state.budget -= 1
            guard candidate.extensions.maySignCertificates else {
                state.refusal = state.refusal ?? .issuerMayNotSign(candidate.subject)
                continue
            }
            do {
                guard try last.isSigned(by: candidate) else {
                    state.refusal = state.refusal ?? .signatureWrong(last.subject, issuer: candidate.subject)
                    continue
                }
            } catch {
                state.refusal = state.refusal ?? .unsupported(last.subject, error.detail)
                continue
            }
            if certificates.contains(candidate) { return path + [candidate] }
            if let whole = self.path(from: path + [candidate], &state) { return whole }
        }
        return nil
    }
}

/// Whether a certificate is to be trusted, and why not.
public enum TrustVerdict: Sendable, Equatable {
    /// From the certificate asked about to an anchor.
    case trusted(path: [Certificate])
    /// Nobody said whom to trust.
    case noAnchors
    /// No anchor has the issuer's name and key identifier.
    case unknownIssuer(DistinguishedName)
    /// An anchor has the issuer's name, and its key did not make the signature.
    case signatureWrong(DistinguishedName, issuer: DistinguishedName)
    case issuerMayNotSign(DistinguishedName)
    /// An algorithm or key of the way is not known.
    case unsupported(DistinguishedName, String)
}

/// A list of country signing certificates that a state publishes (CscaMasterList, ICAO 9303-12 9).
public struct MasterList: Sendable {
    public static let contentType = "2.23.136.1.1.2"

    public let certificates: [Certificate]
    /// What is wrong with those that could not be understood.
    public let faults: [DataObjectError]
    public let signedData: SignedData

    /// - Throws: ``DataObjectError``. Nothing is verified here: see ``SignedData/verify(_:certificate:)``.
    public init(der: [UInt8]) throws(DataObjectError) {
        let octets = try DER.definite(der)
        signedData = try SignedData(try DataObject(octets))
        guard signedData.contentType == Self.contentType else {
            throw DataObjectError(
                .value, path: [0x30], offset: 0, "signed data of type \(signedData.contentType), no master list")
        }
        // CscaMasterList: version, SET OF Certificate.
        let base = signedData.contentOffset ?? 0
        var certificates: [Certificate] = []
        var faults: [DataObjectError] = []
        do {
            let list = try DataObject(signedData.content)
            let parts = try list.elements(of: 0x30)
            for item in try parts.element(1, of: list).elements(of: 0x31) {
                do { certificates.append(try Certificate(item)) } catch { faults.append(error.moved(by: base)) }
            }
        } catch { throw error.moved(by: base) }
        self.certificates = certificates
        self.faults = faults
    }
}

extension DataObjectError {
    /// The same fault, counted from where the octets that were parsed lie in their file.
    public func moved(by octets: Int) -> DataObjectError { DataObjectError(code, path: path, offset: offset + octets, detail) }
}

extension TrustAnchors {
    /// The certificates of files: DER, PEM with any number of certificates, or master lists, whose signature is not looked at: whoever
    /// hands one in trusts it.
    ///
    /// - Throws: ``CryptoError`` with the code `certificate`, which names the file by its place in the list, from 1, when one holds no
    ///   certificate.
    public init(files: [[UInt8]]) throws(CryptoError) {
        var all: [Certificate] = []
        for (index, file) in files.enumerated() {
            do { all += try Self.certificates(in: file) } catch {
                throw CryptoError(code: .certificate, detail: "trust anchor \(index + 1): \(error)")
            }
        }
        self.init(all)
    }

    /// The certificates of one file. Those of a PEM file or master list that cannot be understood are left out where others can.
    ///
    /// - Throws: ``DataObjectError``.
    public static func certificates(in file: [UInt8]) throws(DataObjectError) -> [Certificate] {
        let blocks = PEM.certificates(in: file)
        guard blocks.isEmpty else {
            var found: [Certificate] = []
            var fault: DataObjectError?
            for block in blocks {
                do { found.append(try Certificate(der: block)) } catch { fault = fault ?? error }
            }
            if found.isEmpty, let fault { throw fault }
            return found
        }
        let object = try DataObject(try DER.definite(file), tag: 0x30)
        if try object.children().first?.tag == 0x06 { return try MasterList(der: file).certificates }
        return [try Certificate(object)]
    }
}

/// The textual form of certificates (RFC 7468).
enum PEM {
    /// The octets of each certificate; none when the file has no such form.
    static func certificates(in file: [UInt8]) -> [[UInt8]] {
        var blocks: [[UInt8]] = []
        var current: [UInt8]?
        for line in file.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            if line.starts(with: Array("-----BEGIN CERTIFICATE-----".utf8)) {
                current = []
            } else if line.starts(with: Array("-----END".utf8)) {
                if let text = current, let octets = base64(text) { blocks.append(octets) }
                current = nil
            } else {
                current?.append(contentsOf: line)
            }
        }
        return blocks
    }

    private static func base64(_ text: [UInt8]) -> [UInt8]? {
        var octets: [UInt8] = []
        octets.reserveCapacity(text.count * 3 / 4)
        var bits: UInt32 = 0
        var count = 0
        for character in text where character != 0x3D && character != 0x20 && character != 0x09 {
            let value: UInt8
            switch character {
            case 0x41...0x5A: value = character - 0x41
            case 0x61...0x7A: value = character - 0x61 + 26
            case 0x30...0x39: value = character - 0x30 + 52
            case 0x2B: value = 62
            case 0x2F: value = 63
            default: return nil
            }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                octets.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return octets
    }
}
