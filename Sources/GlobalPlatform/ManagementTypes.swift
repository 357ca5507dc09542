// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// What is left on a card (GPC tag `FF21`), in octets of memory.
public struct FreeResources: Sendable, Hashable {
    /// How many applications are installed.
    public let applications: Int
    /// Free memory that keeps its contents, in octets.
    public let nonVolatile: Int
    /// Free memory that loses them, in octets.
    public let volatile: Int
}

/// One key of a security domain, as the key information template tells it (GPC 11.3.3.1).
public struct KeyInformation: Sendable, Hashable {
    /// Key identifier, 01...7F.
    public let identifier: UInt8
    /// Key version number.
    public let version: UInt8
    /// `80` triple DES, `88` AES.
    public let type: UInt8
    /// In octets.
    public let length: Int
}

/// What SET STATUS changes (GPC 11.10.2.1): P1.
public enum StatusTarget: UInt8, Sendable, Hashable {
    case card = 0x80
    case application = 0x40
    case securityDomainAndApplications = 0x60
}

/// The parameter field of INSTALL [for install] (GPC 11.5.2.3.7).
public struct InstallParameters: Sendable, Hashable {
    /// `C9`: for the application itself.
    public var application: [UInt8]
    /// `C7` and `C8` in `EF`: volatile and non-volatile memory quota; nil for none.
    public var volatileQuota: UInt16?
    /// `C8` in `EF`: see above.
    public var nonVolatileQuota: UInt16?
    /// `A0` in `EF`, object `81`: state in the contactless registry after installation (Amendment C); nil leaves it to the card.
    public var contactless: ContactlessActivation?
    /// `A2` in the user interaction parameters `A1`: the head of the group that it joins (Amendment C); nil for none.
    public var head: [UInt8]?

    /// Parameters; those that are not given are left to the card.
    public init(
        application: [UInt8] = [], volatileQuota: UInt16? = nil, nonVolatileQuota: UInt16? = nil,
        contactless: ContactlessActivation? = nil, head: [UInt8]? = nil
    ) {
        self.application = application
        self.volatileQuota = volatileQuota
        self.nonVolatileQuota = nonVolatileQuota
        self.contactless = contactless
        self.head = head
    }

    var octets: [UInt8] {
        func number(_ value: UInt16) -> [UInt8] { [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)] }
        var system: [UInt8] = []
        if let volatileQuota { system += TLV.encode(0xC7, number(volatileQuota)) }
        if let nonVolatileQuota { system += TLV.encode(0xC8, number(nonVolatileQuota)) }
        if let contactless { system += TLV.encode(0xA0, TLV.encode(0x81, [contactless.rawValue])) }
        if let head { system += TLV.encode(0xA1, TLV.encode(0xA2, TLV.encode(0x4F, head))) }
        return TLV.encode(0xC9, application) + (system.isEmpty ? [] : TLV.encode(0xEF, system))
    }
}

/// Contactless activation states (Amendment C 3.11.1).
public enum ContactlessActivation: UInt8, Sendable, Hashable {
    case deactivated = 0x00
    case activated = 0x01
    case nonActivatable = 0x80
}

enum KeyCheckValue {
    /// Three octets: AES over 16 octets `01` (Amendment D 4.1.3), triple DES over eight zeros (GPC B.6).
    static func of(_ key: [UInt8], isAES: Bool) throws(GlobalPlatformError) -> [UInt8] {
        do throws(CryptoError) {
            let cipher: BlockCipher = isAES ? .aes : .tripleDES
            let block = [UInt8](repeating: isAES ? 0x01 : 0x00, count: cipher.blockLength)
            return Array(try cipher.encrypt(block, key: key).prefix(3))
        } catch {
            throw GlobalPlatformError(.cryptography, detail: error.detail)
        }
    }
}
