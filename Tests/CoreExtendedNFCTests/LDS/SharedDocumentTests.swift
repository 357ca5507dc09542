// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import Octets
import TestSupport
import Testing

@testable import CoreExtendedNFC

@Suite(.enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence))) struct SharedDocumentTests {
    @Test func everySharedFileIsReadToTheEndOrFailsWithItsPlace() throws {
        let lines = try SharedDocumentFiles.entries().map(SharedDocumentFiles.line)
        #expect(lines == Self.expected)
        if lines != Self.expected { print(lines.joined(separator: "\n")) }
    }

    @Test func securityObjectsVerifyUnderTheirAuthorities() throws {
        let folder = "zkpassport__circuits/src/ts/tests/fixtures/zkr/"
        func file(_ name: String) throws -> [UInt8] { try SharedDocumentFiles.octets(folder + name) }
        let anchors = try TrustAnchors(files: [try file("zkr-csca-ecdsa-p256-sha256.pem"), try file("zkr-csca-rsa-2048-sha256.pem")])
        var lines: [String] = []
        for name in ["ecdsa-p256-sha256", "ecdsa-p384-sha384", "rsa-2048-sha256", "rsa-4096-sha512"] {
            let sod = try file("johnny-silverhand-\(name).sod")
            let report = PassiveAuthentication.verify(sod: sod, dataGroups: [:], anchors: anchors, today: SharedDocumentFiles.today)
            let own = try TrustAnchors(files: [try file("zkr-dsc-\(name).pem")])
            let pinned = PassiveAuthentication.verify(sod: sod, dataGroups: [:], anchors: own, today: SharedDocumentFiles.today)
            lines.append(
                "\(name): \(report.status.rawValue), \(report.signature.rawValue), \(report.trust.rawValue), "
                    + "\(report.signatureAlgorithm ?? "-"), \(report.path.count); \(report.detail); own signer \(pinned.trust.rawValue)")
        }
        #expect(lines == [])
        print(lines.joined(separator: "\n"))
    }

    private static let expected: [String] = []
}
