// SPDX-License-Identifier: MIT

import Foundation
import Octets
import Testing

@testable import CoreExtendedNFC

@Suite struct PassportModelTests {
    @Test func storedFilesGiveTheSameModelAndJSONKeepsIt() throws {
        let raw = SpecimenFiles.all.mapValues { Data($0) }
        let model = PassportModel(rawDataGroups: raw, cardAccessRaw: data("31143012060A04007F00070202040404020102020112"))
        #expect(model.mrz?.documentNumber == "L898902C")
        #expect(model.dataGroupReadStatus[.dg2] == .read)
        #expect(model.resolvedFaceImageData?.count == 704)
        // The list of hashes in these files has no signer.
        #expect(model.passiveAuthResult == .signatureInvalid)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let text = try encoder.encode(model)
        #expect(try JSONDecoder().decode(PassportModel.self, from: text) == model)
        #expect(try encoder.encode(model) == text)
        #expect(String(decoding: text, as: UTF8.self).contains("\"dataGroupReadStatus\":{"))
    }

    @Test func aWrongCheckDigitIsAProblemAndNoFailure() {
        let wrong = TLV.encode(0x61, TLV.encode(0x5F1F, Array(SpecimenFiles.mrz.dropLast()).map { $0.asciiValue ?? 0 } + [0x35]))
        let model = PassportModel(rawDataGroups: [.dg1: Data(wrong)])
        #expect(model.dataGroupReadStatus[.dg1] == .read)
        #expect(model.problems.map(\.kind) == [.checkDigit])
        #expect(model.problems.first?.code == "composite")
    }
}
