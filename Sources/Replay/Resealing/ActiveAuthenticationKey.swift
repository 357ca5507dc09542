// SPDX-License-Identifier: MIT

import CardCrypto

/// A chip's key of Active Authentication, and how it signs.
struct ActiveAuthenticationKey: Sendable {
    private enum Form { case recovery(Digest, shortTrailer: Bool), plain(Digest), sequence(Digest) }

    private let key: SigningKey
    private let form: Form

    /// The way in which the recorded signature was made; nil when it is not this key's.
    init?(_ key: SigningKey, signature: [UInt8], over challenge: [UInt8]) {
        self.key = key
        let digests: [Digest] = [.sha1, .sha224, .sha256, .sha384, .sha512]
        if case .rsa = key.publicKey {
            guard let opened = try? MessageRecovery.open(signature, with: key.publicKey),
                (try? MessageRecovery.verifies(signature, rest: challenge, with: key.publicKey)) == true,
                case .rsa(let modulus, _) = key.publicKey
            else { return nil }
            let length = MessageRecovery.recoverableLength(
                modulusLength: modulus.count, digest: opened.digest, shortTrailer: true)
            form = .recovery(opened.digest, shortTrailer: opened.recovered.count == length)
            return
        }
        func verifies(_ scheme: SignatureScheme) -> Bool {
            (try? key.publicKey.verifies(signature, over: challenge, by: scheme)) == true
        }
        if let digest = digests.first(where: { verifies(.ecdsaPlain($0)) }) {
            form = .plain(digest)
        } else if let digest = digests.first(where: { verifies(.ecdsa($0)) }) {
            form = .sequence(digest)
        } else {
            return nil
        }
    }

    func sign(_ challenge: [UInt8], draw: (Int) -> [UInt8]) -> [UInt8]? {
        switch form {
        case .recovery(let digest, let shortTrailer):
            guard case .rsa(let modulus, _) = key.publicKey else { return nil }
            let length = MessageRecovery.recoverableLength(
                modulusLength: modulus.count, digest: digest, shortTrailer: shortTrailer)
            return try? MessageRecovery.sign(
                recovered: draw(length), rest: challenge, digest: digest, shortTrailer: shortTrailer, with: key)
        case .plain(let digest):
            let scheme = SignatureScheme.ecdsaPlain(digest)
            return try? key.sign(challenge, by: scheme, random: draw(scheme.randomLength(for: key.publicKey)))
        case .sequence(let digest):
            let scheme = SignatureScheme.ecdsa(digest)
            return try? key.sign(challenge, by: scheme, random: draw(scheme.randomLength(for: key.publicKey)))
        }
    }
}
