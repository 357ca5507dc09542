// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import Octets
import TestSupport

@testable import CoreExtendedNFC

/// What the parsers make of files that others published, a line for each.
enum SharedDocumentFiles {
    /// A file below `data/`, its octets (hexadecimal text turned into them) and how it is read.
    struct Entry {
        let name: String
        let octets: [UInt8]
        let kind: Kind
    }

    enum Kind {
        case cardAccess, cardSecurity, securityObject, dataGroup(DataGroupId), common, directory, cvCertificate, certificate
        case masterList, trustAnchors, faceRecord
    }

    static func entries() throws -> [Entry] {
        guard let data = SharedData.folder?.appendingPathComponent("data") else { return [] }
        var entries: [Entry] = []
        let files = FileManager.default.enumerator(at: data, includingPropertiesForKeys: [.isRegularFileKey])
        while let url = files?.nextObject() as? URL {
            let path = String(url.path.dropFirst(data.path.count + 1))
            guard !url.hasDirectoryPath, let kind = kind(of: path) else { continue }
            let octets = [UInt8](try Data(contentsOf: url))
            let text = path.hasSuffix(".hex") ? String(decoding: octets, as: UTF8.self).filter { !$0.isWhitespace } : nil
            entries.append(Entry(name: url.lastPathComponent, octets: try text.map { try Hex.decode($0) } ?? octets, kind: kind))
        }
        return try (entries + simulatorFiles(in: data)).sorted { $0.name < $1.name }
    }

    /// The octets of one file below `data/`, by the end of its path.
    static func octets(_ suffix: String) throws -> [UInt8] {
        guard let data = SharedData.folder?.appendingPathComponent("data") else { return [] }
        return [UInt8](try Data(contentsOf: data.appendingPathComponent(suffix)))
    }

    private static func kind(of path: String) -> Kind? {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        switch name {
        case "efCardAccess.hex": return .cardAccess
        case "efCardSecurity.hex", "efcardsecurity.dump": return .cardSecurity
        case "spec_sample_encoded_dg14.bin": return .dataGroup(.dg14)
        case "Datagroup1.bin": return .dataGroup(.dg1)
        case "Datagroup2.bin", "dg2_silver_mandatory_fields.bin": return .dataGroup(.dg2)
        case "Datagroup15.bin": return .dataGroup(.dg15)
        case "EF_DG7.bin": return .dataGroup(.dg7)
        case "EF_DG11.bin": return .dataGroup(.dg11)
        case "EF_COM.bin": return .common
        case "masterList.pem": return .trustAnchors
        case "DECVCAeID00102", "DECVCAEPASS00102": return .cvCertificate
        case _ where path.contains("iso39794") || path.contains("iso19794"): return .faceRecord
        case _ where name.hasSuffix(".sod"): return .securityObject
        case _ where name.hasSuffix(".cvcert") || name.hasPrefix("cv") && name.hasSuffix(".hex"): return .cvCertificate
        case _ where name.hasSuffix(".ml"): return .masterList
        case _ where name.hasSuffix(".cer") && path.hasPrefix("gmrtd__gmrtd"): return .certificate
        case _ where name.hasSuffix(".pem") && path.hasPrefix("zkpassport"): return .trustAnchors
        default: return nil
        }
    }

    private struct Simulator: Decodable {
        struct File: Decodable {
            let fileId: String
            let content: String
        }

        let files: [File]
    }

    private static func simulatorFiles(in data: URL) throws -> [Entry] {
        let url = data.appendingPathComponent("Governikus__AusweisApp/test/fixture/card/simulatorFiles.json")
        let simulator = try JSONDecoder().decode(Simulator.self, from: try Data(contentsOf: url))
        let kinds: [String: Kind] = ["2f00": .directory, "011c": .cardAccess, "011d": .cardSecurity]
        return try simulator.files.compactMap { file in
            guard let kind = kinds[file.fileId] else { return nil }
            return Entry(name: "simulatorFiles.json \(file.fileId)", octets: try Hex.decode(file.content), kind: kind)
        }
    }

    /// `name: what it is`, or the error with its place.
    static func line(_ entry: Entry) -> String {
        do { return "\(entry.name): \(try summary(of: entry.octets, entry.kind))" } catch {
            return "\(entry.name): FAILS \(error)"
        }
    }

    /// Takes the file apart to the last octet.
    static func summary(of octets: [UInt8], _ kind: Kind) throws -> String {
        switch kind {
        case .cardAccess: return try SecurityInfo.parse(octets).map(summary).joined(separator: "; ")
        case .cardSecurity:
            let security = try CardSecurity(octets)
            let infos = security.securityInfos.map(summary).joined(separator: "; ")
            let report = PassiveAuthentication.verify(cardSecurity: security, anchors: TrustAnchors([]), today: today)
            return "\(report.signature.rawValue), \(report.signatureAlgorithm ?? "-"), \(report.signer ?? "-"): \(infos)"
        case .securityObject:
            let object = try SecurityObject(octets)
            let groups = object.dataGroupHashes.keys.compactMap(\.number).sorted().map(String.init).joined(separator: " ")
            return "\(object.hashName ?? object.hashAlgorithm), groups \(groups)"
        case .dataGroup(let group): return try summary(of: octets, group)
        case .common:
            let common = try CommonData(octets)
            return "LDS \(common.ldsVersion ?? "-"), \(common.dataGroups.map(\.displayName).joined(separator: " "))"
        case .directory:
            return try ApplicationTemplate.parse(directory: octets).map { template in
                Hex.encode(template.identifier) + (template.label.map { " \($0)" } ?? "")
            }.joined(separator: "; ")
        case .cvCertificate: return summary(of: try CVCertificate(octets))
        case .certificate, .trustAnchors:
            let certificates = try TrustAnchors.certificates(in: octets)
            let selfSigned = certificates.filter { (try? $0.isSigned(by: $0)) == true }.count
            let first = certificates.first.map { "\($0.subject), \($0.publicKey?.name ?? "?")" } ?? "-"
            return "\(certificates.count) certificates, \(selfSigned) self-signed, \(first)"
        case .masterList:
            let list = try MasterList(der: octets)
            let selfSigned = list.certificates.filter { (try? $0.isSigned(by: $0)) == true }.count
            let report = PassiveAuthentication.verify(masterList: list, anchors: TrustAnchors([]), today: today)
            return "\(list.certificates.count) certificates, \(list.faults.count) not understood, \(selfSigned) self-signed, "
                + "\(report.signature.rawValue), \(report.signer ?? "-")"
        case .faceRecord:
            let file = TLV.encode(
                0x75,
                TLV.encode(
                    0x7F61, [0x02, 0x01, 0x01] + TLV.encode(0x7F60, TLV.encode(octets.first == 0x46 ? 0x5F2E : 0x7F2E, octets))))
            return try summary(of: file, .dg2)
        }
    }

    static let today = CertificateTime(seconds: 1_795_996_800)

    private static func summary(_ info: SecurityInfo) -> String {
        let number = info.parameterId.map { " (\($0))" } ?? ""
        switch info.content {
        case .chipAuthenticationPublicKey(let key):
            return "\(info.securityProtocol.name), \(name(key.publicKey.parameters))\(number)"
        case .paceDomainParameters(let value): return "\(info.securityProtocol.name), \(name(value.parameters))\(number)"
        case .chipAuthenticationDomainParameters(let value):
            return "\(info.securityProtocol.name), \(name(value.parameters))\(number)"
        default: return info.securityProtocol.name + number
        }
    }

    private static func name(_ parameters: SubjectPublicKeyInfo.Parameters) -> String {
        switch parameters {
        case .none: "no parameters"
        case .curve(let curve): "curve \(curve.objectIdentifier ?? "without a name")"
        case .standardized(let number): "standard \(number)"
        case .diffieHellman(let prime, _, _): "DH \(prime.count * 8)"
        case .other(let octets): "\(octets.count) octets"
        }
    }

    private static func summary(of certificate: CVCertificate) -> String {
        let role = certificate.authorization.map { "\($0.role)" } ?? "-"
        let dates = "\(certificate.effective.map(\.description) ?? "-")...\(certificate.expiration.map(\.description) ?? "-")"
        let own = certificate.publicKey.key.map { key in
            certificate.publicKey.scheme.map { scheme in (try? certificate.isSigned(by: key, scheme)) == true } ?? false
        }
        let signed = own == true ? ", self-signed" : ""
        return "\(text(certificate.holderReference)) by \(text(certificate.authorityReference ?? [])), \(role), \(dates), "
            + "\(certificate.publicKey.scheme?.name ?? certificate.publicKey.algorithm)\(signed), \(certificate.extensions.count) extensions"
    }

    private static func summary(of octets: [UInt8], _ group: DataGroupId) throws -> String {
        switch group {
        case .dg1: return try MRZData(dataGroup1: octets).mrzString
        case .dg2:
            let template = try BiometricTemplate.parse(octets, of: .dg2)
            let images = template.flatMap(\.images).map {
                "\($0.format.rawValue) \($0.data.count)\($0.headerFollowed ? "" : " found")"
            }
            let faces = template.flatMap(\.faces).map { "\($0.width)x\($0.height)" }
            return "\(template.count) templates: \((images + faces).joined(separator: ", "))"
        case .dg7:
            return try DocumentImage.signatures(dataGroup7: octets).map { "\($0.format.rawValue) \($0.data.count)" }.joined(
                separator: ", ")
        case .dg11:
            return try AdditionalPersonalDetails(dataGroup11: octets).texts.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }
                .joined(separator: "; ")
        case .dg14: return try SecurityInfo.parse(dataGroup14: octets).map(summary).joined(separator: "; ")
        case .dg15:
            return "\(try ActiveAuthenticationPublicKey.publicKeyInfo(dataGroup15: octets).signatureKey?.name ?? "unknown")"
        default: return "-"
        }
    }
}

/// The same numbers in every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// 0 ..< `limit`.
    mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(max(1, limit))) }
}
