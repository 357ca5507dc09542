// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import CardCrypto

/// The two worked examples of ICAO 9303-11 that do not tell every private key: appendix H.2 and appendix I.1.
@Suite struct FurtherMappingVectorTests {
    private func hex(_ text: String) throws -> [UInt8] { try Hex.decode(text) }

    /// Appendix H.2: DH, integrated mapping, AES-128, 1024/160.
    @Test func integratedMappingModuloAPrime() throws {
        let parameters = try #require(DomainParameters.standardized(0))
        let password = try KeyDerivation.key(from: Array("123456".utf8), counter: KeyDerivation.password, for: .aes128)
        let nonce = try BlockCipher.aes.decrypt(try hex("9ABB8864CA0FF1551E620D1EF4E13510"), key: password)
        #expect(Hex.encode(nonce) == "FA5B7E3E49753A0DB9178B7B9BD898C8")
        let mapped = try parameters.integratedMapping(
            nonce: nonce, terminalNonce: try hex("B3A6DB3C870C3E99245E0D1C06B747DE"), algorithm: .aes128)
        #expect(
            Hex.encode(try mapped.generator())
                == "1D7D767F11E333BCD6DBAEF40E799E7A926B96973550656FF3C830726D118D61C276CDCC61D475CF03A98E0C0E79CAEB"
                + "A5BE25578BD4551D0B10903236F0B0F976852FA78EEA14EA0ACA87D1E91F688FE0DFF897BBE35A472621D343564B262F"
                + "34223AE8FC59B664BFEDFA2BFE7516CA5510A6BBB633D517EC25D4E0BBAA16C2")
        // The example's private key is longer than the order; the order is what counts.
        let secret = try remainder(
            of: try hex(
                "4BD0E54740F9A028E6A515BFDAF967848C4F5F5FFF65AA0915947FFD1A0DF2FA6981271BC905F3551457B7E03AC3B806"
                    + "6DE4AA406C1171FB43DD939C4BA16175103BA3DEE16419AA248118F90CC36A3D6F4C373652E0C3CCE7F0F1D0C5425B36"
                    + "00F0F0D6A67F004C8BBA33F2B4733C7252445C1DFC4F1107203F71D2EFB28161"),
            by: try hex(StandardGroups.modular[0].q))
        let reader = try KeyAgreementKeyPair(mapped, privateKey: secret)
        #expect(
            Hex.encode(reader.publicKey)
                == "0F0CC62945A8029251FB7EF3C094E12EC68E4EF07F27CB9D9CD04C5C4250FAE0E4F8A951557E929AEB48E5C6DD47F2F5"
                + "CD7C351A9BD2CD722C07EDE166770F08FFCB370262CF308DD7B07F2E0DA9CAAA1492344C852906919538C98A4BA4187E"
                + "76CE9D87832386D319CE2E043C3343AEAE6EDBA1A9894DC5094D22F7FE1351D5")
        let chipKey = try hex(
            "928D9A0F9DBA450F13FC859C6F290D1D36E42431138A4378500BEB4E0401854CFF111F71CB6DC1D0335807A11388CC8E"
                + "AA87B07907AAD9FBA6B169AF6D8C26AF8DDDC39ADC3AD2E3FF882B84D23E9768E95A80E4746FB07A9767679FE92133B4"
                + "D379935C771BD7FBED6C7BB4B1708B275EA75679524CDC9C6A91370CC662A2F3")
        let shared = try reader.sharedSecret(with: chipKey)
        let macKey = try KeyDerivation.key(from: shared, counter: KeyDerivation.authentication, for: .aes128)
        #expect(
            Hex.encode(try KeyDerivation.key(from: shared, counter: KeyDerivation.encryption, for: .aes128))
                == "01AFC10CF87BE36D8179E87370171F07")
        #expect(Hex.encode(macKey) == "23F0FBD05FD6C7B8B88F4C8309669061")
        #expect(try token(0x84, "04007F00070202040302", chipKey, macKey) == "55D61977CBF5307E")
        #expect(try token(0x84, "04007F00070202040302", reader.publicKey, macKey) == "C2F04230187E1525")
    }

    /// Appendix I.1: ECDH, chip authentication mapping, AES-128, brainpoolP256r1.
    @Test func chipAuthenticationMapping() throws {
        let parameters = try #require(DomainParameters.standardized(13))
        let password = try KeyDerivation.key(
            from: try Digest.sha1.hash(Array("C11T002JM496081222310314".utf8)), counter: KeyDerivation.password, for: .aes128)
        let nonce = try BlockCipher.aes.decrypt(try hex("CB60E8E0D85B76A9BD304747C2AD42E2"), key: password)
        #expect(Hex.encode(nonce) == "658B860BC94DF6F044FCE6D5C82CF8E5")
        let mapping = try KeyAgreementKeyPair(
            parameters, privateKey: try hex("5D8BB87BD74D985A4B7D4325B9F7B976FE835122773400798914AA22738135CC"))
        #expect(
            Hex.encode(mapping.publicKey)
                == "047F1D410ADB7DDB3B84BF1030800981A9105D7457B4A3ADE002384F3086C67EDE"
                + "1AB889104A27DB6D842B019020FBF3CEACB0DC627F7BDCAC29969E19D0E553C1")
        let chipMapping = try KeyAgreementKeyPair(
            parameters, privateKey: try hex("9E56A6B59C95D06ECE5CD10F983BB2F4F1943528E577F23881D89D8C3BBEE0AA"))
        #expect(
            Hex.encode(chipMapping.publicKey)
                == "04A234236AA9B9621E8EFB73B5245C0E09D2576E5277183C1208BDD55280CAE8B3"
                + "04F365713A356E65A451E165ECC9AC0AC46E3771342C8FE5AEDD092685338E23")
        let mapped = try parameters.genericMapping(nonce: nonce, keyPair: mapping, publicKey: chipMapping.publicKey)
        #expect(
            Hex.encode(try mapped.generator())
                == "0489F0B5EABF3BE293C75903A3986131925C9F5B515CA95AF485DC7E886F03245D"
                + "44BEFB2DD3A0DBD71CB5E618971CF4747F12B79E548379A40E45963BAAF3E829")
        let reader = try KeyAgreementKeyPair(
            mapped, privateKey: try hex("76ECFDAA9841C323A3F5FC5E88B88DB3EFF7E35EBF57A7E6946CB630006C2120"))
        #expect(
            Hex.encode(reader.publicKey)
                == "04446C934084D9DAB863944F219520076C29EE3F7AE6722B11FF319EC1C7728F95"
                + "5483400BFF60BF0C5929270009277DC2A515E12575010AD9BA916CF1BF86FEFC")
        let chipKey = try hex(
            "0402AD566F3C6EC7F9324509AD50A51FA52030782A4968FCFEDF737DAEA9933331"
                + "11C3B9B4C2287789BD137E7F8AA882E2A3C633CCD6ECC2C63C57AD401A09C2E1")
        let shared = try reader.sharedSecret(with: chipKey)
        let encryptionKey = try KeyDerivation.key(from: shared, counter: KeyDerivation.encryption, for: .aes128)
        let macKey = try KeyDerivation.key(from: shared, counter: KeyDerivation.authentication, for: .aes128)
        #expect(Hex.encode(encryptionKey) == "0A9DA4DB03BDDE39FC5202BC44B2E89E")
        #expect(Hex.encode(macKey) == "4B1C06491ED5140CA2B537D344C6C0B1")
        #expect(try token(0x86, "04007F00070202040602", chipKey, macKey) == "E86BD06018A1CD3B")
        #expect(try token(0x86, "04007F00070202040602", reader.publicKey, macKey) == "8596CF055C67C1A3")

        // Object 8A, and what is inside.
        let vector = try BlockCipher.aes.encrypt([UInt8](repeating: 0xFF, count: 16), key: encryptionKey)
        #expect(Hex.encode(vector) == "F6A3B75A1E933941DD7A13E2520779DF")
        let sealed = try hex(
            "1EEA964DAAE372AC990E3EFDE6333353BFC89A6704D93DA8798CF77F5B7A54BD10CBA372B42BE0B9B5F28AA8DE2F4F92")
        let data = try #require(Padding.unpad(try BlockCipher.aes.decrypt(sealed, key: encryptionKey, iv: vector)))
        #expect(Hex.encode(data) == "85DC3FA93D0952BFA82F5FD189EE75BD82F11D1F0B8ED4BF5319AC9B53C426B3")
        let fixed = try KeyAgreementKeyPair(
            parameters, privateKey: try hex("86C88A4579CE48135878E6348A734B5D47CE5BC1E54C0E8978687B49FDE2E2C2"))
        #expect(try fixed.chipAuthenticationData(for: chipMapping) == data)
        // ChipAuthenticationPublicKeyInfo's key in EF.CardSecurity.
        let key = try KeyAgreementPublicKey(
            subjectPublicKeyInfo: try hex(
                "3052300C060704007F0007010202010D034200041872709494399E7470A6431BE25E83EEE24FEA568C2ED28DB48E05DB3A610DC8"
                    + "84D256A40E35EFCB59BF6753D3A489D28C7A4D973C2DA138A6E7A4A08F68E16F"))
        #expect(key.octets == fixed.publicKey)
        #expect(key.parameters.standardizedIdentifier == 13)
        #expect(
            try parameters.verifiesChipAuthentication(data: data, staticKey: key.octets, mappingKey: chipMapping.publicKey))
    }

    private func token(_ tag: UInt32, _ identifier: String, _ key: [UInt8], _ macKey: [UInt8]) throws -> String {
        let object = TLV.encode(0x7F49, TLV.encode(0x06, try hex(identifier)) + TLV.encode(tag, key))
        return Hex.encode(try KeyDerivation.Algorithm.aes128.authenticationToken(object, key: macKey))
    }

    /// Long division bit by bit, for the one number here that is longer than its order.
    private func remainder(of number: [UInt8], by divisor: [UInt8]) throws -> [UInt8] {
        var rest = [UInt8](repeating: 0, count: divisor.count + 1)
        let divisor = [0] + divisor
        for octet in number {
            for bit in (0..<8).reversed() {
                var carry = octet >> UInt8(bit) & 1
                for index in rest.indices.reversed() {
                    let next = rest[index] >> 7
                    rest[index] = rest[index] << 1 | carry
                    carry = next
                }
                guard !rest.lexicographicallyPrecedes(divisor) else { continue }
                var borrow = 0
                for index in rest.indices.reversed() {
                    let difference = Int(rest[index]) - Int(divisor[index]) - borrow
                    rest[index] = UInt8(truncatingIfNeeded: difference)
                    borrow = difference < 0 ? 1 : 0
                }
            }
        }
        return Array(rest.dropFirst())
    }
}
