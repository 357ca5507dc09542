// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import CardCrypto

/// ICAO 9303-11 appendix D, as recomputed for this project.
@Suite struct BasicAccessControlVectors {
    let seed = try! Hex.decode("239AB9CB282DAF66231DC5A4DF6BFBAE")

    @Test func theKeySeedGivesTheDocumentKeys() throws {
        #expect(
            Hex.encode(try KeyDerivation.key(from: seed, counter: 1, for: .tripleDES)) == "AB94FDECF2674FDFB9B391F85D7F76F2")
        #expect(
            Hex.encode(try KeyDerivation.key(from: seed, counter: 2, for: .tripleDES)) == "7962D9ECE03D1ACD4C76089DCE131543")
    }

    @Test func theCryptogramAndItsMACAreThoseOfTheStandard() throws {
        let s = try Hex.decode("781723860C06C2264608F919887022120B795240CB7049B01C19B33E32804F0B")
        let enc = try KeyDerivation.key(from: seed, counter: 1, for: .tripleDES)
        let mac = try KeyDerivation.key(from: seed, counter: 2, for: .tripleDES)
        let cryptogram = try BlockCipher.tripleDES.encrypt(s, key: enc)
        #expect(Hex.encode(cryptogram) == "72C29C2371CC9BDB65B779B8E8D37B29ECC154AA56A8799FAE2F498F76ED92F2")
        #expect(Hex.encode(try RetailMAC.authenticate(cryptogram, key: mac)) == "5F1448EEA8AD90A7")
        #expect(try BlockCipher.tripleDES.decrypt(cryptogram, key: enc) == s)
    }
}
