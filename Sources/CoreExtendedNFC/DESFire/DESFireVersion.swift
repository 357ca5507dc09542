// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Octets

/// What GetVersion tells (28 octets, 29 with a fabrication key identifier).
public struct DESFireVersion: Sendable, Codable, Equatable {
    /// A description of the hardware or of the software.
    public struct Part: Sendable, Codable, Equatable {
        /// 04 is NXP.
        public var vendorID: UInt8
        public var type: UInt8
        public var subtype: UInt8
        public var majorVersion: UInt8
        public var minorVersion: UInt8
        /// The size of the memory: 2 to the power of the upper seven bits; more than that when bit 0 is set.
        public var storageSize: UInt8
        /// 05 is ISO/IEC 14443-2 and -3.
        public var protocolType: UInt8

        /// Octets of memory: the lower bound when it lies between two powers of two.
        public var storageBytes: Int { storageSize >> 1 < 31 ? 1 << Int(storageSize >> 1) : 0 }
    }

    public var hardware: Part
    public var software: Part
    /// Seven octets; zeros when the card shows a random UID.
    public var uid: Data
    /// Five octets.
    public var batch: Data
    /// BCD.
    public var productionWeek: UInt8
    /// BCD.
    public var productionYear: UInt8
    /// Newer chips add it when it is not the default.
    public var fabricationKeyID: UInt8?

    /// - Throws: ``NFCError/invalidResponse(_:)``.
    public init(bytes: some Collection<UInt8>) throws {
        let octets = Array(bytes)
        guard octets.count == 28 || octets.count == 29 else { throw NFCError.invalidResponse(Data(octets)) }
        hardware = Self.part(octets[0..<7])
        software = Self.part(octets[7..<14])
        uid = Data(octets[14..<21])
        batch = Data(octets[21..<26])
        productionWeek = octets[26]
        productionYear = octets[27]
        fabricationKeyID = octets.count == 29 ? octets[28] : nil
    }

    public var generation: DESFireGeneration { DESFireGeneration(hardware) }

    private static func part(_ octets: ArraySlice<UInt8>) -> Part {
        let octets = Array(octets)
        return Part(
            vendorID: octets[0], type: octets[1], subtype: octets[2], majorVersion: octets[3], minorVersion: octets[4],
            storageSize: octets[5], protocolType: octets[6])
    }
}

/// A generation of the chips that speak these commands, by the hardware's type and version (NXP AN10833).
public enum DESFireGeneration: String, Sendable, Hashable, Codable, CaseIterable {
    /// The first DESFire, MF3ICD40.
    case d40
    case ev1, ev2, ev2XL, ev3, light, duox
    case ntag413DNA, ntag424DNA
    case plusEV1, plusEV2
    /// A card that an application of a phone or another chip plays.
    case applet
    case generic

    init(_ part: DESFireVersion.Part) {
        // The upper half of the type tells the package: 81 is 01 in another one, 91 an applet.
        switch (part.type, part.majorVersion, part.minorVersion) {
        case (0x91, _, _): self = .applet
        case _ where part.type & 0x0F == 0x08 && part.majorVersion & 0xF0 == 0x30: self = .light
        case _ where part.type & 0x0F == 0x04: self = part.majorVersion == 0x10 ? .ntag413DNA : .ntag424DNA
        case _ where part.type & 0x0F == 0x02: self = part.majorVersion == 0x22 ? .plusEV2 : .plusEV1
        case _ where part.type & 0x0F != 0x01: self = .generic
        case (_, 0x00, _): self = .d40
        case (_, 0x01, _): self = .ev1
        case (_, 0x12, _), (_, 0x02, _): self = .ev2
        case (_, 0x22, _): self = .ev2XL
        case (_, 0x33, _), (_, 0x03, _): self = .ev3
        case (_, 0xA0, _): self = .duox
        default: self = .generic
        }
    }

    /// Whether the chip has the EV2 channel.
    public var hasEV2Channel: Bool {
        switch self {
        case .ev2, .ev2XL, .ev3, .light, .duox, .ntag424DNA: true
        default: false
        }
    }
}
