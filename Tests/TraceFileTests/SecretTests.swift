// SPDX-License-Identifier: MIT

import Foundation
import Octets
import Testing

@testable import TraceFile

@Suite struct SecretTests {
    private let other = "00000000-0D8F-4B9E-8A53-5A1F0C7F3B11"

    private func sideFile(_ path: String, session: String = Sample.session) throws {
        var writer = try SecretsWriter(creating: path, session: session)
        try writer.write([Sample.secrets[0]])
        try writer.write([Sample.secrets[1], Sample.secrets[2]])
        try writer.close()
    }

    private func trace(_ path: String) throws {
        try Trace(header: Sample.header, interfaces: Sample.interfaces, rows: Sample.rows).write(to: path)
    }

    @Test func theSideFileIsFoundByName() throws {
        let folder = try Folder()
        try trace(folder("a.pcapng"))
        try sideFile(folder("a.secrets"))
        let (store, place) = try SecretStore.load(forTrace: folder("a.pcapng"))
        #expect(place == .beside(path: folder("a.secrets")))
        #expect(store.records == [SecretRecord](Sample.secrets[..<3]))
        #expect(store.session == Sample.session)
    }

    @Test func theSideFileOfACompressedTraceHasTheSameName() {
        #expect(SecretStore.sidePath(forTrace: "x/a.pcapng.gz") == "x/a.secrets")
        #expect(SecretStore.sidePath(forTrace: "x/a.pcapng") == "x/a.secrets")
        #expect(SecretStore.sidePath(forTrace: "a.cap") == "a.cap.secrets")
    }

    @Test func theSideFileIsFoundBySessionWhenItsNameIsAnother() throws {
        let folder = try Folder()
        try trace(folder("renamed.pcapng"))
        try sideFile(folder("0.secrets"), session: other)
        try sideFile(folder("a.secrets"))
        let (store, place) = try SecretStore.load(forTrace: folder("renamed.pcapng"))
        #expect(place == .beside(path: folder("a.secrets")))
        #expect(store.records.count == 3)
    }

    @Test func anotherSessionsSideFileIsRefusedWithBothIds() throws {
        let folder = try Folder()
        try trace(folder("a.pcapng"))
        try sideFile(folder("a.secrets"), session: other)
        do throws(TraceFileError) {
            _ = try SecretStore.load(forTrace: folder("a.pcapng"))
            Issue.record("it was taken")
        } catch {
            #expect(error.code == .otherSession(wanted: Sample.session, found: other))
            #expect(error.description == "\(folder("a.secrets")) belongs to session \(other), not to \(Sample.session)")
        }
    }

    @Test func secretsInsideTheTraceComeFirst() throws {
        let folder = try Folder()
        try Sample.write(to: folder("a.pcapng"))
        try sideFile(folder("a.secrets"), session: other)
        let (store, place) = try SecretStore.load(forTrace: folder("a.pcapng"))
        #expect(place == .inside)
        #expect(store.records.count == 4)
    }

    @Test func withoutASideFileTheStoreIsEmpty() throws {
        let folder = try Folder()
        try trace(folder("a.pcapng"))
        let (store, place) = try SecretStore.load(forTrace: folder("a.pcapng"))
        #expect(place == .none)
        #expect(store.isEmpty)
    }

    @Test func aSecretIsInItsFileWhenTheCallReturnsAndTheFileIsItsOwnersAlone() throws {
        let folder = try Folder()
        var writer = try SecretsWriter(creating: folder("a.secrets"), session: Sample.session)
        try writer.write([Sample.secrets[0]])
        #expect(try SecretStore.load(path: folder("a.secrets")).records == [Sample.secrets[0]])
        let mode = try FileManager.default.attributesOfItem(atPath: folder("a.secrets"))[.posixPermissions] as? Int
        #expect(mode == 0o600)
        try writer.write([])
        #expect(writer.byteCount == UInt64(try folder.octets("a.secrets").count))
    }

    @Test func aSideFileThatIsCutKeepsWhatCameBefore() throws {
        let folder = try Folder()
        try sideFile(folder("a.secrets"))
        let path = try folder.write([UInt8](try folder.octets("a.secrets").dropLast(5)), "b.secrets")
        let store = try SecretStore.load(path: path)
        #expect(store.records == [SecretRecord](Sample.secrets[..<2]))
        #expect(store.damage?.kind == .cutShort)
    }

    @Test func aRecordThatRunsPastItsBlockIsDamage() throws {
        var octets = try Sample.octets()
        // The first secrets block; its first record's length of octets stands 14 after the record's start.
        octets[blockEnds(octets)[4] + 16 + 14] = 200
        let trace = try Trace(octets: octets)
        #expect(trace.damage?.kind == .damaged)
        #expect(trace.damage?.block == 6)
        #expect(trace.secrets.isEmpty)
    }

    @Test func secretsAreFoundByNameCallAndPlace() {
        let store = SecretStore(Sample.secrets)
        #expect(store.value(named: "call:1:bac.kIFD:0") == [9])
        #expect(store.entropy(call: 1, label: "bac.rndIFD", index: 0) == [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(store.entropy(call: 1, label: "bac.rndIFD", index: 1) == nil)
        #expect(store.keys(named: "bac.seed") == [Sample.secrets[1]])
        #expect(store.sealed(packetID: 2, interface: 0, direction: .sent) == [Sample.secrets[2]])
        #expect(store.sealed(packetID: 2, interface: 0, direction: .received).isEmpty)
        #expect(store.sealed(packetID: 1 << 32 + 2, interface: 0, direction: .sent).isEmpty)
        #expect(
            store.opened([0, 0x20, 0, 1, 2, 0, 0, 9], packetID: 2, interface: 0, direction: .sent) == [
                0, 0x20, 0, 1, 2, 0x31, 0x32, 9,
            ])
        #expect(store.opened([0, 0x20], packetID: 2, interface: 0, direction: .sent) == [0, 0x20])
    }

    @Test func aStoreThatIsPrintedShowsNoSecret() {
        let store = SecretStore(Sample.secrets)
        #expect("\(store)" == "4 secrets")
        var dumped = ""
        dump(store, to: &dumped)
        #expect(!dumped.contains("bac"))
    }

    @Test func mergingKeepsWhatWasThereFirst() {
        let first = SecretStore([SecretRecord(kind: .key, name: "a.b", octets: [1])])
        let second = SecretStore([SecretRecord(kind: .key, name: "a.b", octets: [2])], lines: [.can("123456")])
        let merged = first.merging(second)
        #expect(merged.value(named: "a.b") == [1])
        #expect(merged.keys(named: "a.b").map(\.octets) == [[1], [2]])
        #expect(merged.value(named: "can") == [UInt8]("123456".utf8))
        #expect(merged.lines == [.can("123456")])
        #expect(merged.records.count == 3)
    }

    @Test func everyFormOfTheTextIsReadWithoutLoss() throws {
        let text = """
            # a comment
            mrz L898902C<369080619406236
              can 123456   # the number on the card
            pin 271828
            puk 31415926

            desfire aid 01F4A1 key 0 aes 00112233445566778899AABBCCDDEEFF an10922
            scp03 kvn 30 enc 404142434445464748494A4B4C4D4E4F mac 101112131415161718191A1B1C1D1E1F dek 202122232425262728292A2B2C2D2E2F
            bac.seed 239AB9CB 282DAF66 231DC5A4DF6BFBAE
            """
        let store = try SecretStore.load(text: text)
        #expect(
            store.lines == [
                .mrz("L898902C<369080619406236"), .can("123456"), .pin("271828"), .puk("31415926"),
                .desfire(
                    DESFireSecret(
                        application: [0x01, 0xF4, 0xA1], keyNumber: 0, type: "aes",
                        octets: try Hex.decode("00112233445566778899AABBCCDDEEFF"),
                        isDiversified: true)),
                .scp03(version: 0x30, enc: Array(0x40...0x4F), mac: Array(0x10...0x1F), dek: Array(0x20...0x2F)),
                .given(name: "bac.seed", octets: try Hex.decode("239AB9CB282DAF66231DC5A4DF6BFBAE")),
            ]
        )
        #expect(store.value(named: "bac.seed")?.count == 16)
        #expect(store.value(named: "globalPlatform.mac") == Array(0x10...0x1F))
        #expect(store.value(named: "mrz") == [UInt8]("L898902C<369080619406236".utf8))
        #expect(store.value(named: "pin") == [UInt8]("271828".utf8))
        #expect(store.value(named: "puk") == [UInt8]("31415926".utf8))
    }

    @Test(arguments: [
        ("mrz", 1, 4), ("# x\n\ncan 12a4", 3, 5), ("pin 12-4", 1, 5), ("puk", 1, 4), ("bac.seed 00zz", 1, 12),
        ("bac.seed 001", 1, 13), ("bac.seed", 1, 9),
        ("scp03", 1, 6), ("scp03 kvn 30 enc 00", 1, 18), ("scp03 kvm 30", 1, 7), ("scp03 kvn", 1, 10),
        ("seed 00", 1, 1),
        ("a.b.c 00", 1, 1), ("mrz A B", 1, 7), ("  desfire", 1, 10), ("desfire aid 01F4 key 0 aes 00", 1, 13),
        ("desfire aid 01F4A1 key 0 rsa 00", 1, 26), ("desfire aid 01F4A1 key 0 aes 00", 1, 30), ("\u{1F600} 00", 1, 1),
    ]) func aLineThatNothingCanBeMadeOfIsNamed(_ text: String, _ line: Int, _ column: Int) {
        do throws(TraceFileError) {
            _ = try SecretStore.load(text: text, name: "KEYS")
            Issue.record("it was read")
        } catch {
            #expect(error.code == .malformedSecret(line: line, column: column))
            #expect(error.description.hasPrefix("KEYS, line \(line), column \(column): "))
        }
    }

    @Test func aFileOfTextIsReadWhereBlocksAre() throws {
        let folder = try Folder()
        let path = try folder.write([UInt8]("can 654321\r\nmrz X\r\n".utf8), "keys.txt")
        #expect(try SecretStore.load(path: path).lines == [.can("654321"), .mrz("X")])
    }

    @Test func anImageIsNoFileOfSecrets() throws {
        let folder = try Folder()
        let path = try folder.write([0xFF, 0xD8, 0xFF, 0xE1, 0, 0], "a.jpg")
        #expect(throws: TraceFileError(.notACapture(firstBytes: [0xFF, 0xD8, 0xFF, 0xE1], guess: nil), path: path)) {
            try SecretStore.load(path: path)
        }
    }
}
