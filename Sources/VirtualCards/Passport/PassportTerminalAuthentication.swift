// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The chip's side of Terminal Authentication version 1 (ICAO 9303-11 7.1, BSI TR-03110 part 3 B.3): MSE:Set DST, PSO:VERIFY CERTIFICATE,
/// MSE:Set AT, GET CHALLENGE, EXTERNAL AUTHENTICATE, in that order, inside the channel that Chip Authentication opened.
///
/// A value: the card keeps one for a session and forgets it with the session, except for ``verifier``, whose trust points and date stay.
struct PassportTerminalAuthentication: Sendable {
    private enum State: Sendable {
        case idle
        /// A certificate may follow that this authority signed.
        case authorityNamed([UInt8])
        /// The terminal's key is chosen.
        case terminalNamed(CVCertificateVerifier.TrustPoint)
        case challenged(CVCertificateVerifier.TrustPoint, challenge: [UInt8])
        case authenticated(CVCertificate.Authorization)
    }

    private(set) var verifier: CVCertificateVerifier
    private var state = State.idle

    /// - Parameter verifier: what the card trusts, and its idea of today.
    init(verifier: CVCertificateVerifier) { self.verifier = verifier }

    /// Whether the terminal proved that it may read the data group.
    func mayRead(dataGroup number: Int) -> Bool {
        guard case .authenticated(let authorization) = state else { return false }
        return number == 3 ? authorization.mayReadDG3 : number == 4 ? authorization.mayReadDG4 : false
    }

    /// EF.CVCA (9303-11 7.1.5): the newest authority reference and the one before it, filled with zeros to 36 octets.
    func fileOfAuthorities() -> [UInt8] {
        let references = verifier.trustPoints.suffix(2).reversed().flatMap { TLV.encode(0x42, $0.reference) }
        return references + [UInt8](repeating: 0, count: max(0, 36 - references.count))
    }

    /// MSE:Set DST, `22 81 B6`: names the key that the next certificate is verified with.
    ///
    /// - Parameter data: `83 reference`.
    /// - Throws: `6A80` for other data, `6A88` for a key that is not known.
    mutating func setAuthority(_ data: [UInt8]) throws(StatusWord) {
        let reference = try Self.reference(data)
        guard verifier.key(of: reference) != nil else { throw .referencedDataNotFound }
        state = .authorityNamed(reference)
    }

    /// PSO:VERIFY CERTIFICATE, `2A 00 BE`.
    ///
    /// - Parameter data: body and signature, `7F4E` and `5F37`.
    /// - Throws: `6985` out of order, `6A80` for what is no certificate, `6300` for one that is not valid.
    mutating func verifyCertificate(_ data: [UInt8]) throws(StatusWord) {
        guard case .authorityNamed(let reference) = state else { throw .conditionsNotSatisfied }
        state = .idle
        guard let certificate = try? CVCertificate(TLV.encode(0x7F21, data)) else { throw .wrongData }
        guard certificate.authorityReference == reference else { throw .wrongData }
        do { try verifier.verify(certificate) } catch { throw .authenticationFailed }
    }

    /// MSE:Set AT, `22 81 A4`: chooses the terminal's key, that of the certificate verified last.
    ///
    /// - Parameter data: `83 reference`.
    mutating func setTerminal(_ data: [UInt8]) throws(StatusWord) {
        let reference = try Self.reference(data)
        guard let current = verifier.current, current.reference == reference, current.authorization.role == .terminal else {
            throw .referencedDataNotFound
        }
        state = .terminalNamed(current)
    }

    /// GET CHALLENGE once the terminal's key is chosen. Nothing happens when it is not: a challenge is no harm.
    mutating func challenge(_ challenge: [UInt8]) {
        switch state {
        case .terminalNamed(let terminal), .challenged(let terminal, _): state = .challenged(terminal, challenge: challenge)
        case .idle, .authorityNamed, .authenticated: break
        }
    }

    /// Whether the terminal's key is chosen: GET CHALLENGE belongs to Terminal Authentication then.
    var isWaitingForChallenge: Bool {
        switch state {
        case .terminalNamed, .challenged: true
        case .idle, .authorityNamed, .authenticated: false
        }
    }

    /// EXTERNAL AUTHENTICATE: the terminal's signature over identity, challenge and its key.
    ///
    /// - Parameters:
    ///   - chipIdentity: the document number with its check digit, or the chip's compressed ephemeral key of PACE.
    ///   - compressedKey: the terminal's ephemeral key of Chip Authentication, compressed.
    /// - Throws: `6985` out of order, `6300` for a wrong signature.
    mutating func authenticate(
        _ signature: [UInt8], chipIdentity: [UInt8], compressedKey: [UInt8]
    ) throws(StatusWord) {
        guard case .challenged(let terminal, let challenge) = state else { throw .conditionsNotSatisfied }
        state = .idle
        guard let key = terminal.publicKey.key, let scheme = terminal.publicKey.scheme,
            (try? key.verifies(signature, over: chipIdentity + challenge + compressedKey, by: scheme)) == true
        else { throw .authenticationFailed }
        state = .authenticated(terminal.authorization)
    }

    private static func reference(_ data: [UInt8]) throws(StatusWord) -> [UInt8] {
        guard let object = try? DataObject(data, tag: 0x83), object.octets.count == data.count else { throw .wrongData }
        return Array(object.value)
    }
}
