// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Octets

/// The kinds of image that documents hold, by their first octets.
public enum ImageFormat: String, Sendable, Codable {
    case jpeg
    /// A JPEG 2000 file or bare codestream.
    case jpeg2000
    case unknown

    init(_ octets: some Collection<UInt8>) {
        if octets.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if octets.starts(with: [0x00, 0x00, 0x00, 0x0C, 0x6A, 0x50]) || octets.starts(with: [0xFF, 0x4F, 0xFF, 0x51]) {
            self = .jpeg2000
        } else {
            self = .unknown
        }
    }
}

/// The first face image of DG2 (ICAO 9303-10 4.7.2), in its stored format.
public struct FaceImage: Sendable, Codable, Equatable {
    public let data: Data
    public let format: ImageFormat
    /// False when the record's header could not be followed and the image was found by its first octets.
    public let headerFollowed: Bool

    /// - Throws: ``LDSError``.
    public init(dataGroup2 file: [UInt8]) throws(LDSError) {
        let outer = try fileObject(file, tag: 0x75, in: "DG2")
        guard let block = TLV.find(0x5F2E, in: outer.value) ?? TLV.find(0x7F2E, in: outer.value) else {
            throw LDSError(.missing, "DG2 has no biometric data (5F2E, 7F2E)")
        }
        if let image = Self.imageOfFaceRecord(block.value) {
            self.init(image, headerFollowed: true)
        } else if let image = Self.imageFoundByMagic(block.value) {
            self.init(image, headerFollowed: false)
        } else {
            throw LDSError(.value, offset: block.offset, "DG2 holds no image of a known kind")
        }
    }

    private init(_ image: ArraySlice<UInt8>, headerFollowed: Bool) {
        data = Data(image)
        format = ImageFormat(image)
        self.headerFollowed = headerFollowed
    }

    /// ISO/IEC 19794-5: `FAC`, version, length, count; then for the first face 20 octets, 8 for each point, 12 about the image.
    private static func imageOfFaceRecord(_ octets: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        var cursor = ByteCursor(octets)
        guard let header = try? cursor.take(14), header.starts(with: [0x46, 0x41, 0x43, 0x00]),
            let length = try? cursor.u32(), let points = try? cursor.u16(), (try? cursor.take(14)) != nil,
            (try? cursor.take(Int(points) * 8)) != nil, (try? cursor.take(12)) != nil
        else { return nil }
        let imageLength = Int(length) - 32 - Int(points) * 8
        guard imageLength > 0, let image = try? cursor.take(imageLength), ImageFormat(image) != .unknown else { return nil }
        return image
    }

    private static func imageFoundByMagic(_ octets: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        for index in octets.indices where octets[index] == 0xFF || octets[index] == 0x00 {
            let rest = octets[index...]
            if ImageFormat(rest) != .unknown { return rest }
        }
        return nil
    }
}
