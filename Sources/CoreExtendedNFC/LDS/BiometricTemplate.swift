// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials
import Octets

/// One biometric information template of DG2, DG3 or DG4 (ICAO 9303-10 4.7.2 to 4.7.4, ISO/IEC 7816-11): a header and a data block.
public struct BiometricTemplate: Sendable, Equatable {
    /// The format of the block (CBEFF format type, `88`).
    public enum Format: Sendable, Equatable {
        /// ISO/IEC 19794-4, -5, -6.
        case finger, face, iris
        /// ISO/IEC 39794-5.
        case extensibleFace
        /// As it stands; nil when the header says nothing.
        case other(UInt16?)
    }

    /// `81`: 02 face, 08 finger, 10 iris; nil when not said.
    public let biometricType: UInt8?
    /// `82`.
    public let subtype: UInt8?
    /// `87`: 0101 is ISO/IEC JTC 1/SC 37.
    public let formatOwner: UInt16?
    public let format: Format
    /// The block (`5F2E` or `7F2E`) as stored, without tag and length.
    public let block: Data
    /// The images inside, in order. Empty when the block has none of a known kind.
    public let images: [DocumentImage]
    /// Of each face of an ISO/IEC 19794-5 record; empty for other formats.
    public let faces: [FaceDetails]
    /// Where the block's value begins in the file.
    let blockOffset: Int

    /// The templates of DG2, DG3 or DG4. A group without any (4.7.3.2) holds filler in place of them.
    ///
    /// - Throws: ``LDSError``.
    public static func parse(_ file: [UInt8], of group: DataGroupId) throws(LDSError) -> [BiometricTemplate] {
        try understanding(group.displayName) { () throws(DataObjectError) in
            let object = try fileObject(file, tag: UInt32(group.tag))
            guard let list = try object.children(filler: true).first(0x7F61) else {
                throw object.fault(.missing, "no group of templates (7F61)")
            }
            let parts = try list.children(filler: true)
            var templates: [BiometricTemplate] = []
            for part in parts where part.tag == 0x7F60 { templates.append(try BiometricTemplate(part)) }
            // The number is wrong in documents of several states, so that it decides nothing.
            if templates.isEmpty, let count = parts.first(0x02), try count.smallInteger() > 0 {
                throw list.fault(.missing, "no template (7F60)")
            }
            return templates
        }
    }

    private init(_ object: DataObject) throws(DataObjectError) {
        let parts = try object.children(filler: true)
        let header = try parts.first(0xA1)?.children(filler: true) ?? []
        biometricType = header.first(0x81)?.value.last
        subtype = header.first(0x82)?.value.last
        formatOwner = header.first(0x87).flatMap { Self.number($0.value) }
        format = Self.format(header.first(0x88).flatMap { Self.number($0.value) })
        guard let block = parts.first(0x5F2E) ?? parts.first(0x7F2E) else {
            throw object.fault(.missing, "no biometric data (5F2E, 7F2E)")
        }
        self.block = Data(block.value)
        blockOffset = block.value.startIndex
        let records = BiometricRecords(block)
        images = records.images
        faces = records.faces
    }

    private static func number(_ octets: ArraySlice<UInt8>) -> UInt16? {
        guard (1...2).contains(octets.count) else { return nil }
        return octets.reduce(0) { $0 << 8 | UInt16($1) }
    }

    private static func format(_ number: UInt16?) -> Format {
        switch number {
        case 0x0007: .finger
        case 0x0008: .face
        case 0x0009: .iris
        case 0x002A: .extensibleFace
        default: .other(number)
        }
    }
}

/// What the records of a biometric data block hold. The block's own first octets decide how it is read: format types are often wrong.
struct BiometricRecords {
    private(set) var images: [DocumentImage] = []
    private(set) var faces: [FaceDetails] = []

    init(_ block: DataObject) {
        let octets = block.value
        if octets.starts(with: Array("FAC\0".utf8)) {
            readFaces(octets)
        } else if octets.starts(with: Array("FIR\0".utf8)) {
            images = Self.fingers(octets)
        } else if octets.starts(with: Array("IIR\0".utf8)) {
            images = Self.irises(octets)
        } else if let objects = try? block.children() {
            // ISO/IEC 39794: the image is a primitive under a context tag, wherever the standard's modules put it.
            var budget = 4_096
            images = objects.flatMap { Self.extensible($0, &budget) }
        }
        if images.isEmpty, let image = DocumentImage(foundIn: octets) {
            images = [image]
            faces = []
        }
    }

    /// ISO/IEC 19794-5: header of 14 octets; for each face 20 octets, 8 for each point, 12 about the image, the image.
    private mutating func readFaces(_ octets: ArraySlice<UInt8>) {
        var cursor = ByteCursor(octets)
        guard (try? cursor.take(12)) != nil, let count = try? cursor.u16() else { return }
        for _ in 0..<count {
            guard let face = try? FaceDetails.read(&cursor) else { return }
            // What no program can show is no image that the header led to.
            guard ImageFormat(face.image) != .unknown else { return }
            images.append(DocumentImage(face.image))
            faces.append(face.details)
        }
    }

    /// ISO/IEC 19794-4: header of 32 octets; for each view 14 octets, the image.
    private static func fingers(_ octets: ArraySlice<UInt8>) -> [DocumentImage] {
        var cursor = ByteCursor(octets)
        guard let header = try? cursor.take(32) else { return [] }
        var images: [DocumentImage] = []
        for _ in 0..<header[header.startIndex + 18] {
            guard let length = try? cursor.u32(), length > 14, (try? cursor.take(10)) != nil,
                let image = try? cursor.take(Int(length) - 14)
            else { break }
            images.append(DocumentImage(image))
        }
        return images
    }

    /// ISO/IEC 19794-6: header of 45 octets; for each eye its kind and the number of images; for each image 11 octets, the image.
    private static func irises(_ octets: ArraySlice<UInt8>) -> [DocumentImage] {
        var cursor = ByteCursor(octets)
        guard let header = try? cursor.take(45) else { return [] }
        var images: [DocumentImage] = []
        for _ in 0..<header[header.startIndex + 14] {
            guard (try? cursor.u8()) != nil, let count = try? cursor.u16() else { return images }
            for _ in 0..<count {
                guard (try? cursor.take(7)) != nil, let length = try? cursor.u32(), let image = try? cursor.take(Int(length))
                else {
                    return images
                }
                images.append(DocumentImage(image))
            }
        }
        return images
    }

    private static func extensible(_ object: DataObject, _ budget: inout Int) -> [DocumentImage] {
        guard budget > 0 else { return [] }
        budget -= 1
        if (0x80...0x9E).contains(object.tag), ImageFormat(object.value) != .unknown { return [DocumentImage(object.value)] }
        var first = object.tag
        while first > 0xFF { first >>= 8 }
        guard first & 0x20 != 0, let inner = try? object.children() else { return [] }
        var images: [DocumentImage] = []
        for part in inner { images += extensible(part, &budget) }
        return images
    }
}
