// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials

/// The kinds of image that documents hold, by their first octets.
public enum ImageFormat: String, Sendable, Codable {
    case jpeg
    /// A JPEG 2000 file or bare codestream.
    case jpeg2000
    case png
    /// Wavelet scalar quantization, the format of fingerprints.
    case wsq
    case unknown

    init(_ octets: some Collection<UInt8>) {
        if octets.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if octets.starts(with: [0x00, 0x00, 0x00, 0x0C, 0x6A, 0x50]) || octets.starts(with: [0xFF, 0x4F, 0xFF, 0x51]) {
            self = .jpeg2000
        } else if octets.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if octets.starts(with: [0xFF, 0xA0, 0xFF]) {
            self = .wsq
        } else {
            self = .unknown
        }
    }
}

/// An image in its stored format.
public struct DocumentImage: Sendable, Codable, Equatable {
    public let data: Data
    /// By the first octets, whatever the record around it says.
    public let format: ImageFormat
    /// False when the record's header could not be followed and the image was found by its first octets.
    public let headerFollowed: Bool

    init(_ octets: some Collection<UInt8>, headerFollowed: Bool = true) {
        data = Data(octets)
        format = ImageFormat(octets)
        self.headerFollowed = headerFollowed
    }

    /// The image that begins at the first octets of a known kind; nil when there is none.
    init?(foundIn octets: ArraySlice<UInt8>) {
        guard
            let start = octets.indices.first(where: { index in
                [0xFF, 0x00, 0x89].contains(octets[index]) && ImageFormat(octets[index...]) != .unknown
            })
        else { return nil }
        self.init(octets[start...], headerFollowed: false)
    }

    /// The images of DG5, portraits as they are displayed: `65 { 02 n, 5F40 image .. }` (ICAO 9303-10 4.7.5).
    ///
    /// - Throws: ``LDSError``.
    public static func portraits(dataGroup5 file: [UInt8]) throws(LDSError) -> [DocumentImage] {
        try understanding("DG5") { () throws(DataObjectError) in try displayed(file, tag: 0x65, image: 0x5F40) }
    }

    /// The images of DG7, signatures and usual marks: `67 { 02 n, 5F43 image .. }` (ICAO 9303-10 4.7.7).
    ///
    /// - Throws: ``LDSError``.
    public static func signatures(dataGroup7 file: [UInt8]) throws(LDSError) -> [DocumentImage] {
        try understanding("DG7") { () throws(DataObjectError) in try displayed(file, tag: 0x67, image: 0x5F43) }
    }

    private static func displayed(_ file: [UInt8], tag: UInt32, image: UInt32) throws(DataObjectError) -> [DocumentImage] {
        let object = try fileObject(file, tag: tag)
        let parts = try object.children(filler: true)
        let images = parts.filter { $0.tag == image }
        if let count = parts.first(0x02), try count.smallInteger() != images.count {
            throw count.fault(.value, "\(try count.smallInteger()) images said to be there, \(images.count) are")
        }
        return images.map { DocumentImage($0.value) }
    }
}
