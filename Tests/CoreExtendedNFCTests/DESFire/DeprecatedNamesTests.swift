// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Foundation
import Testing
import VirtualCards

/// What a program that was written for the names of before says; a witness may be deprecated without a warning where it is called.
private protocol OlderProgram {
    func run(over transport: any NFCTagTransport) async throws -> (
        applications: [Data], files: [UInt8], size: Int?, container: Type4CC
    )
}

private struct NamesOfVersion1: OlderProgram {
    @available(*, deprecated)
    func run(
        over transport: any NFCTagTransport
    ) async throws -> (applications: [Data], files: [UInt8], size: Int?, container: Type4CC) {
        let applications = try await CoreExtendedNFC.getApplicationIDs(transport: transport)
        try await CoreExtendedNFC.selectApplication(Data([0xF0, 0, 1]), transport: transport)
        let files = try await CoreExtendedNFC.getFileIDs(transport: transport)
        let size = try await CoreExtendedNFC.getFileSettings(6, transport: transport).fileSize
        return (applications, files, size, try await CoreExtendedNFC.readType4CC(transport: transport))
    }
}

@Suite struct DeprecatedNamesTests {
    @Test func theNamesOfVersion1DoWhatTheNewOnesDo() async throws {
        let transport = VirtualCardTransport(try VirtualCardCatalog.make(kind: "desfire"))
        let program: any OlderProgram = NamesOfVersion1()
        let told = try await program.run(over: transport)
        #expect(told.applications == [Data([0xF0, 0, 1]), Data([0, 0, 1])])
        #expect(told.files == [1, 2, 3, 4, 5, 6])
        #expect(told.size == 32)
        #expect(told.container.fileID == 0xE104)
    }
}
