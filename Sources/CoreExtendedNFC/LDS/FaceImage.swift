// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials
import Octets

/// The first face image of DG2 (ICAO 9303-10 4.7.2), in its stored format.
public struct FaceImage: Sendable, Codable, Equatable {
    public let data: Data
    public let format: ImageFormat
    /// False when the record's header could not be followed and the image was found by its first octets.
    public let headerFollowed: Bool
    /// What an ISO/IEC 19794-5 record says about it.
    public let details: FaceDetails?

    /// - Throws: ``LDSError``.
    public init(dataGroup2 file: [UInt8]) throws(LDSError) {
        guard let template = try BiometricTemplate.parse(file, of: .dg2).first else {
            throw LDSError(.missing, file: "DG2", path: "75/7F61", "no biometric data (5F2E, 7F2E)")
        }
        guard let image = template.images.first else {
            throw LDSError(
                .value, file: "DG2", path: "75/7F61/7F60", offset: template.blockOffset, "no image of a known kind")
        }
        data = image.data
        format = image.format
        headerFollowed = image.headerFollowed
        details = template.faces.first
    }
}

/// What an ISO/IEC 19794-5 record says about a face. Zero stands for *unspecified* throughout.
public struct FaceDetails: Sendable, Codable, Equatable {
    /// 1 male, 2 female, FF unknown.
    public let sex: UInt8
    public let eyeColour: UInt8
    public let hairColour: UInt8
    /// 24 bits: glasses, moustache, beard and so on.
    public let features: UInt32
    public let expression: UInt16
    /// Yaw, pitch and roll as coded.
    public let pose: [UInt8]
    public let featurePoints: Int
    /// 0 basic, 1 full frontal, 2 token frontal.
    public let imageType: UInt8
    /// 0 JPEG, 1 JPEG 2000, as the record says.
    public let imageDataType: UInt8
    /// In pixels.
    public let width: Int
    public let height: Int
    public let colourSpace: UInt8
    public let source: UInt8
    public let quality: UInt16

    /// Reads one face of a record and leaves the cursor behind it.
    static func read(_ cursor: inout ByteCursor) throws(OutOfOctets) -> (details: FaceDetails, image: ArraySlice<UInt8>) {
        let length = Int(try cursor.u32())
        let points = Int(try cursor.u16())
        let sex = try cursor.u8()
        let eyes = try cursor.u8()
        let hair = try cursor.u8()
        let features = UInt32(truncatingIfNeeded: try cursor.bigEndian(3))
        let expression = try cursor.u16()
        let pose = Array(try cursor.take(3))
        _ = try cursor.take(3 + points * 8)
        let type = try cursor.u8()
        let dataType = try cursor.u8()
        let width = Int(try cursor.u16())
        let height = Int(try cursor.u16())
        let colourSpace = try cursor.u8()
        let source = try cursor.u8()
        _ = try cursor.u16()
        let quality = try cursor.u16()
        let image = try cursor.take(length - 32 - points * 8)
        let details = FaceDetails(
            sex: sex, eyeColour: eyes, hairColour: hair, features: features, expression: expression, pose: pose,
            featurePoints: points, imageType: type, imageDataType: dataType, width: width, height: height,
            colourSpace: colourSpace,
            source: source, quality: quality)
        return (details, image)
    }
}
