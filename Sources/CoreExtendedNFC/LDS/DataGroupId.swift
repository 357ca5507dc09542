// SPDX-License-Identifier: MIT

/// A file of the eMRTD application (ICAO 9303-10 4.6, 4.7).
public enum DataGroupId: String, Sendable, Hashable, Codable, CaseIterable, CodingKeyRepresentable {
    case com, sod
    case dg1, dg2, dg3, dg4, dg5, dg6, dg7, dg8, dg9, dg10, dg11, dg12, dg13, dg14, dg15, dg16

    /// The file identifier.
    public var fileIdentifier: UInt16 {
        switch self {
        case .com: 0x011E
        case .sod: 0x011D
        default: 0x0100 + UInt16(number ?? 0)
        }
    }

    /// The tag of the file's one data object.
    public var tag: UInt8 {
        switch self {
        case .com: 0x60
        case .sod: 0x77
        case .dg1: 0x61
        case .dg2: 0x75
        case .dg3: 0x63
        case .dg4: 0x76
        case .dg5: 0x65
        case .dg6: 0x66
        case .dg7: 0x67
        case .dg8: 0x68
        case .dg9: 0x69
        case .dg10: 0x6A
        case .dg11: 0x6B
        case .dg12: 0x6C
        case .dg13: 0x6D
        case .dg14: 0x6E
        case .dg15: 0x6F
        case .dg16: 0x70
        }
    }

    /// 1 to 16 for data groups, nil for EF.COM and EF.SOD.
    public var number: Int? {
        switch self {
        case .com, .sod: nil
        default: Int(rawValue.dropFirst(2))
        }
    }

    /// `EF.COM`, `EF.SOD`, `DG1`.
    public var displayName: String { number.map { "DG\($0)" } ?? "EF.\(rawValue.uppercased())" }

    /// Whether only terminals that proved themselves may read it: fingers and irises.
    public var needsExtendedAccessControl: Bool { self == .dg3 || self == .dg4 }

    /// The data group of this number, 1 to 16.
    public init?(number: Int) { self.init(rawValue: "dg\(number)") }

    /// The file whose data object has this tag.
    public init?(tag: UInt8) {
        guard let match = Self.allCases.first(where: { $0.tag == tag }) else { return nil }
        self = match
    }

    /// The most octets that are read of it: 10 MB of what holds images, 64 KB of the rest.
    var sizeLimit: Int {
        switch self {
        case .dg2, .dg3, .dg4, .dg5, .dg6, .dg7: 10 << 20
        default: 64 << 10
        }
    }
}
