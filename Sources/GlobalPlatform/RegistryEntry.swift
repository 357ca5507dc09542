// SPDX-License-Identifier: MIT

import Octets

/// What GET STATUS lists (GPC 11.4.2.1): P1.
public enum RegistryScope: UInt8, Sendable, Hashable, CaseIterable {
    case issuerSecurityDomain = 0x80
    /// Applications and supplementary security domains.
    case applications = 0x40
    case loadFiles = 0x20
    case loadFilesAndModules = 0x10
}

/// Privileges of an application (GPC tables 11-7 to 11-9): byte 1 in bits 23...16, byte 3 in bits 7...0.
public struct Privileges: OptionSet, Sendable, Hashable {
    /// The three octets, the first one highest.
    public let rawValue: UInt32
    /// Privileges from their three octets.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// It is a security domain.
    public static let securityDomain = Privileges(rawValue: 0x80_0000)
    /// It verifies the signatures of load files.
    public static let dapVerification = Privileges(rawValue: 0xC0_0000)
    /// It manages content under tokens.
    public static let delegatedManagement = Privileges(rawValue: 0xA0_0000)
    /// It may lock the card.
    public static let cardLock = Privileges(rawValue: 0x10_0000)
    /// It may end the card.
    public static let cardTerminate = Privileges(rawValue: 0x08_0000)
    /// It is selected after a reset.
    public static let cardReset = Privileges(rawValue: 0x04_0000)
    /// It manages the card's global PIN.
    public static let cvmManagement = Privileges(rawValue: 0x02_0000)
    /// Every load file must have its signature.
    public static let mandatedDAP = Privileges(rawValue: 0xC1_0000)
    /// It hands commands to applications.
    public static let trustedPath = Privileges(rawValue: 0x00_8000)
    /// It manages content without tokens.
    public static let authorizedManagement = Privileges(rawValue: 0x00_4000)
    /// It verifies tokens.
    public static let tokenManagement = Privileges(rawValue: 0x00_2000)
    /// It may delete anything.
    public static let globalDelete = Privileges(rawValue: 0x00_1000)
    /// It may lock any application.
    public static let globalLock = Privileges(rawValue: 0x00_0800)
    /// It sees and changes the whole registry.
    public static let globalRegistry = Privileges(rawValue: 0x00_0400)
    /// It is the only application that can be selected from then on.
    public static let finalApplication = Privileges(rawValue: 0x00_0200)
    /// It offers a service to others.
    public static let globalService = Privileges(rawValue: 0x00_0100)
    /// It makes receipts.
    public static let receiptGeneration = Privileges(rawValue: 0x00_0080)
    /// It deciphers load files.
    public static let cipheredLoad = Privileges(rawValue: 0x00_0040)
    /// It may make applications available to contactless readers (Amendment C).
    public static let contactlessActivation = Privileges(rawValue: 0x00_0020)
    /// It may make itself available to contactless readers (Amendment C).
    public static let contactlessSelfActivation = Privileges(rawValue: 0x00_0010)

    /// One octet when the other two are zero, else three.
    public var octets: [UInt8] {
        let all = [
            UInt8(truncatingIfNeeded: rawValue >> 16), UInt8(truncatingIfNeeded: rawValue >> 8),
            UInt8(truncatingIfNeeded: rawValue),
        ]
        return all[1] == 0 && all[2] == 0 ? [all[0]] : all
    }

    /// Nil unless there are one or three octets.
    public init?(octets: some Collection<UInt8>) {
        guard octets.count == 1 || octets.count == 3 else { return nil }
        let padded = Array(octets) + [0, 0]
        rawValue = UInt32(padded[0]) << 16 | UInt32(padded[1]) << 8 | UInt32(padded[2])
    }
}

/// An entry of the registry: an application, a security domain or a load file.
public struct RegistryEntry: Sendable, Hashable {
    /// Its name: `4F`.
    public let aid: [UInt8]
    /// GPC tables 11-3 to 11-6: `9F70`, first octet.
    public let lifeCycle: UInt8
    /// Second octet of `9F70`, where the card gives it (Amendment C): 00 deactivated, 01 activated, 80 non-activatable.
    public let contactlessState: UInt8?
    /// `C5`; none for a load file.
    public let privileges: Privileges
    /// `C4`: the load file that an application's code is in.
    public let loadFileAID: [UInt8]?
    /// `CE`: version of a load file.
    public let version: [UInt8]?
    /// `84`: modules of a load file.
    public let moduleAIDs: [[UInt8]]
    /// `CC`: the security domain that it belongs to.
    public let securityDomainAID: [UInt8]?

    /// Whether bit 8 of an application's life cycle says that it is locked.
    public var isLocked: Bool { lifeCycle & 0x80 != 0 }

    /// The entries in the data field of a response to GET STATUS.
    ///
    /// - Throws: ``GlobalPlatformError`` with the code `malformedResponse`.
    public static func parse(_ data: [UInt8]) throws(GlobalPlatformError) -> [RegistryEntry] {
        func malformed(_ detail: String) -> GlobalPlatformError {
            GlobalPlatformError(.malformedResponse, command: "GET STATUS", detail: detail)
        }
        do throws(TLVError) {
            var entries: [RegistryEntry] = []
            for object in try TLV.parse(data) {
                guard object.tag == 0xE3 else { throw TLVError(code: .truncated, offset: object.offset) }
                guard let entry = RegistryEntry(try object.children()) else {
                    throw TLVError(code: .truncated, offset: object.offset)
                }
                entries.append(entry)
            }
            return entries
        } catch {
            throw malformed("byte \(error.offset) begins no entry of the registry")
        }
    }

    private init?(_ objects: [TLV]) {
        func value(_ tag: UInt32) -> [UInt8]? { objects.first { $0.tag == tag }.map { Array($0.value) } }
        guard let aid = value(0x4F), let state = value(0x9F70), let first = state.first else { return nil }
        self.aid = aid
        lifeCycle = first
        contactlessState = state.count > 1 ? state[1] : nil
        privileges = value(0xC5).flatMap { Privileges(octets: $0) } ?? []
        loadFileAID = value(0xC4)
        version = value(0xCE)
        moduleAIDs = objects.filter { $0.tag == 0x84 }.map { Array($0.value) }
        securityDomainAID = value(0xCC)
    }
}

/// An application in the contactless registry (Amendment C 3.11, as a CRS application lists it).
public struct ContactlessEntry: Sendable, Hashable {
    /// Its name: `4F`.
    public let aid: [UInt8]
    /// First octet of `9F70`.
    public let lifeCycle: UInt8
    /// 00 deactivated, 01 activated, 80 non-activatable.
    public let activation: UInt8
    /// Raised by each change of the entry; nil when the card does not tell.
    public let updateCounter: UInt16?
    /// `A2`: the head of the application's group; nil for a head and for one that stands alone.
    public let head: [UInt8]?
    /// Place in the order of selection, 0 first, as the card listed them.
    public let order: Int
}
