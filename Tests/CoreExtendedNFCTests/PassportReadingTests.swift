// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import Octets
import Synchronization
import Testing

@testable import CoreExtendedNFC

/// Runs `operation` with the random octets of ICAO 9303-11 D.3.
func withAppendixD<Result>(_ keys: KeyCollector? = nil, _ operation: () async throws -> Result) async rethrows -> Result {
    let random = FixedRandom(draws: [
        "bac.rndIFD": octets(AppendixD.random), "bac.kIFD": octets(AppendixD.keyingMaterial),
    ])
    return try await CardEnvironment.with(CardEnvironment(random: random, keySink: keys, readersAllowed: false), operation)
}

enum SpecimenFiles {
    static let com = octets("60145F0104303130365F36063034303030305C026175")
    static let mrz = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<L898902C<3UTO6908061F9406236ZE184226B<<<<<14"
    static let dg1 = TLV.encode(0x61, TLV.encode(0x5F1F, Array(mrz.utf8)))
    static let dg2 = TLV.encode(
        0x75,
        TLV.encode(
            0x7F61,
            octets("020101") + TLV.encode(0x7F60, TLV.encode(0x5F2E, octets("FFD8FFE0") + [UInt8](repeating: 7, count: 700)))))

    /// A security object with hashes of zeros for these groups; unsigned.
    static func sod(_ groups: [Int]) -> [UInt8] {
        let sha256 = TLV.encode(0x30, octets("0609608648016503040201"))
        let hashes = groups.flatMap {
            TLV.encode(0x30, [0x02, 0x01, UInt8($0)] + TLV.encode(0x04, [UInt8](repeating: 0, count: 32)))
        }
        let list = TLV.encode(0x30, octets("020100") + sha256 + TLV.encode(0x30, hashes))
        let content = TLV.encode(
            0x30, octets("0606678108010101") + TLV.encode(0xA0, TLV.encode(0x04, list)))
        let signed = TLV.encode(0x30, octets("020103") + TLV.encode(0x31, sha256) + content)
        return TLV.encode(0x77, TLV.encode(0x30, octets("06092A864886F70D010702") + TLV.encode(0xA0, signed)))
    }

    static let all: [DataGroupId: [UInt8]] = [.com: com, .sod: sod([1, 2]), .dg1: dg1, .dg2: dg2]
    /// EF.COM lists DG3 too.
    static let withDG3 = all.merging([.com: octets("600C5F0104303130375C03617563")]) { $1 }
}

/// What was selected in the eMRTD application, in order.
private func selections(_ chip: SecuredChip) -> [DataGroupId] {
    chip.commands.filter { $0.ins == 0xA4 && $0.p1 == 2 }.dropFirst().compactMap { command in
        DataGroupId.allCases.first { $0.fileIdentifier & 0xFF == UInt16(command.data?.last ?? 0) }
    }
}

@Suite struct PassportReadingTests {
    private func read(
        _ chip: any NFCTagTransport, _ groups: [DataGroupId], mrzKey: String = AppendixD.mrzKey, activeAuth: Bool = true,
        onProgress: (@Sendable (String) -> Void)? = nil
    ) async throws -> PassportModel {
        try await withAppendixD {
            try await CoreExtendedNFC.readPassport(
                transport: chip, mrzKey: mrzKey, dataGroups: groups, performActiveAuth: activeAuth, onProgress: onProgress)
        }
    }

    /// ICAO 9303-11 D.3 and D.4, every octet in both directions: the whole read of EF.COM.
    @Test func theSessionOfAppendixDIsMadeOctetForOctet() async throws {
        let chip = ScriptedChip(exchanges: [
            ("00A4000C", "9000"), ("00A4020C02011C", "6A82"), ("00A4040C07A0000002471001", "9000"),
            ("0084000008", AppendixD.challenge + "9000"), (AppendixD.authenticate, AppendixD.authenticated),
            ("0CA4020C158709016375432908C044F68E08BF8B92D635FF24F800", "990290008E08FA855A5D4C50A8ED9000"),
            ("0CB000000D9701048E08ED6705417E96BA5500", "8709019FF0EC34F9922651990290008E08AD55CC17140B2DED9000"),
            (
                "0CB000040D9701128E082EA28A70F3C7B53500",
                "871901FB9235F4E4037F2327DCC8964F1F9B8C30F42C8E2FFF224A990290008E08C8B2787EAEA07D749000"
            ),
        ])
        let keys = KeyCollector()
        let model = try await withAppendixD(keys) {
            try await CoreExtendedNFC.readPassport(transport: chip, mrzKey: AppendixD.mrzKey, dataGroups: [.com])
        }
        #expect(chip.commands.count == 8)
        #expect(model.rawDataGroups == [.com: Data(SpecimenFiles.com)])
        #expect(model.ldsVersion == "0106")
        #expect(model.availableDataGroups == [.dg1, .dg2])
        #expect(model.dataGroupReadStatus == [.com: .read])
        #expect(keys.names == ["bac.seed", "secureMessaging.enc", "secureMessaging.mac", "secureMessaging.ssc"])
        #expect(keys["bac.seed"] == octets("239AB9CB282DAF66231DC5A4DF6BFBAE"))
        #expect(keys["secureMessaging.enc"] == octets(AppendixD.encryption))
        #expect(keys["secureMessaging.mac"] == octets(AppendixD.authentication))
        #expect(keys["secureMessaging.ssc"] == octets(AppendixD.counter))
    }

    @Test func aPassportIsReadAndNothingIsClaimedThatWasNotDone() async throws {
        let lines = Mutex<[String]>([])
        let model = try await read(SecuredChip(files: SpecimenFiles.all), [.dg1, .sod, .com, .dg2]) { line in
            lines.withLock { $0.append(line) }
        }
        #expect(model.mrz?.lastName == "ERIKSSON")
        #expect(model.mrz?.checkDigitsHold == true)
        #expect(model.sod?.hashName == "SHA-256")
        #expect(model.faceImageFormat == .jpeg)
        #expect(model.faceImageData?.count == 704)
        #expect(model.problems.isEmpty)
        // The list of hashes in these files has no signer.
        #expect(model.passiveAuthResult == .signatureInvalid)
        #expect(model.activeAuthResult == nil)
        #expect(model.securityReport.bac.status == .succeeded)
        #expect(model.securityReport.pace.status == .notAdvertised)
        #expect(model.securityReport.passiveAuthentication.status == .failed)
        #expect(model.securityReport.activeAuthentication.status == .notAdvertised)
        #expect(
            lines.withLock { $0 } == [
                "access  BAC: keys agreed, secure messaging with 3DES", "read  EF.COM, 22 bytes",
                "read  EF.SOD, \(SpecimenFiles.sod([1, 2]).count) bytes", "read  DG1, 93 bytes",
                "read  DG2, \(SpecimenFiles.dg2.count) bytes", "result  4 of 4 files read",
            ])
    }

    @Test func stepsCountBytesAndExchanges() async throws {
        let steps = Mutex<[PassportProgress]>([])
        _ = try await PassportProgress.$observer.withValue(
            PassportProgress.Observer { step in steps.withLock { $0.append(step) } }
        ) {
            try await read(SecuredChip(files: SpecimenFiles.all), [.com, .dg1])
        }
        let all = steps.withLock { $0 }
        let done = all.filter { $0.state != .running }
        #expect(done.map(\.subject) == ["BAC", "EF.COM", "DG1", ""])
        #expect(done.map(\.exchanges) == [5, 3, 3, 0])
        #expect(done[2].bytesTotal == 93)
        #expect(all.filter { $0.subject == "DG1" && $0.state == .running }.map(\.bytesDone) == [4, 93])
    }

    @Test func comAndSODComeFirstThenDG1AndTheProtectedGroupsLast() async throws {
        var files = SpecimenFiles.all
        files[.sod] = SpecimenFiles.sod([1, 2, 3, 4, 11, 14, 15, 16])
        for (group, tag) in [(DataGroupId.dg3, 0x63), (.dg4, 0x76), (.dg11, 0x6B), (.dg14, 0x6E), (.dg15, 0x6F), (.dg16, 0x70)]
            as [(DataGroupId, UInt32)]
        {
            files[group] = TLV.encode(tag, [1, 2, 3])
        }
        let chip = SecuredChip(files: files)
        let model = try await read(chip, DataGroupId.allCases.reversed())
        #expect(selections(chip) == [.com, .sod, .dg1, .dg14, .dg2, .dg11, .dg16, .dg15, .dg3, .dg4])
        #expect(model.dataGroupReadStatus[.dg5] == .notPresent)
        #expect(model.rawDataGroups[.dg16] == Data([0x70, 3, 1, 2, 3]))
        #expect(model.securityReport.activeAuthentication.status == .notSupported)
    }

    /// EF.COM is not signed: what it leaves out is looked up in EF.SOD, which is then read although nobody asked.
    @Test func onlyTheSecurityObjectCanRuleAGroupOut() async throws {
        var files = SpecimenFiles.all
        files[.com] = octets("600A5F0104303130375C0161")
        let chip = SecuredChip(files: files)
        let model = try await read(chip, [.com, .dg1, .dg2, .dg7])
        #expect(selections(chip) == [.com, .sod, .dg1, .dg2])
        #expect(model.dataGroupReadStatus[.dg2] == .read)
        #expect(model.dataGroupReadStatus[.dg7] == .notPresent)
        // Without a security object that can be read, the card is asked.
        files[.sod] = nil
        let other = SecuredChip(files: files)
        let rest = try await read(other, [.com, .dg1, .dg7])
        #expect(selections(other) == [.com, .sod, .dg1, .dg7])
        #expect(rest.dataGroupReadStatus[.dg7] == .notPresent)
        #expect(rest.problems.contains { $0.dataGroup == .dg7 && $0.code == "6A82" && $0.kind == .refused })
    }

    @Test func withoutAnIndexEachGroupIsTried() async throws {
        let chip = SecuredChip(files: SpecimenFiles.all)
        let model = try await read(chip, [.dg1, .dg7])
        #expect(selections(chip) == [.dg1, .dg7])
        #expect(model.dataGroupReadStatus == [.dg1: .read, .dg7: .notPresent])
    }

    /// M16 of the terminal page; field report E17.
    @Test func aWrongKeyIsTheCardsRefusal() async throws {
        let error = await #expect(throws: NFCError.self) {
            try await read(SecuredChip(files: SpecimenFiles.all), [.dg1], mrzKey: "L898902C<369080619406230")
        }
        #expect(error == .bacFailed(""))
        #expect(error?.description == "the card refused the key: 6300 to EXTERNAL AUTHENTICATE")
    }

    @Test func noTravelDocumentIsToldByItsApplication() async throws {
        let chip = ScriptedChip { _, command in command.count > 5 && command[2] == 4 ? [0x6A, 0x82] : [0x6D, 0x00] }
        await #expect(throws: NFCError.applicationNotFound(aid: data("A0000002471001"))) { try await read(chip, [.dg1]) }
        let other = ScriptedChip { _, command in command.count > 5 && command[2] == 4 ? [0x69, 0x99] : [0x6D, 0x00] }
        await #expect(throws: NFCError.unexpectedStatusWord(0x69, 0x99)) { try await read(other, [.dg1]) }
    }

    @Test func anEmptyKeyOrListSendsNothing() async throws {
        let chip = SecuredChip(files: SpecimenFiles.all)
        await #expect(throws: NFCError.unsupportedOperation("")) { try await read(chip, [.dg1], mrzKey: "") }
        await #expect(throws: NFCError.unsupportedOperation("")) { try await read(chip, []) }
        #expect(chip.commands.isEmpty)
    }

    @Test(arguments: 1...11)
    func aRemovalBeforeDG1WasReadIsALostConnection(number: Int) async throws {
        let chip = SecuredChip(files: SpecimenFiles.all) { count, _, honest in count == number ? .removed : .plain(honest) }
        await #expect(throws: NFCError.tagConnectionLost) { try await read(chip, [.com, .dg1]) }
        #expect(chip.commands.count == number)
    }

    @Test func aRemovalAfterDG1GivesWhatWasRead() async throws {
        let chip = SecuredChip(files: SpecimenFiles.withDG3) { count, _, honest in count == 13 ? .removed : .plain(honest) }
        let model = try await read(chip, [.com, .dg1, .dg2, .dg3])
        #expect(model.dataGroupReadStatus[.dg1] == .read)
        #expect(model.dataGroupReadStatus[.dg2] == .failed)
        #expect(model.dataGroupReadStatus[.dg3] == .notRead)
        let problem = model.problems.first { $0.kind == .lost }
        #expect(problem?.dataGroup == .dg2)
        #expect(problem?.code == "tagConnectionLost")
        #expect(problem?.side == .outside)
    }

    @Test func aGroupThatNeedsMoreAccessIsUnavailable() async throws {
        var files = SpecimenFiles.all
        files[.sod] = SpecimenFiles.sod([1, 2, 3])
        for answer in [SecuredChip.Answer.plain([0x69, 0x82]), .bare([0x69, 0x82])] {
            let chip = SecuredChip(files: files) { _, command, honest in
                command.data == Data([0x01, 0x03]) ? answer : .plain(honest)
            }
            let model = try await read(chip, [.com, .sod, .dg1, .dg3])
            #expect(model.dataGroupReadStatus[.dg3] == .unavailable)
            #expect(model.problems.first?.code == "6982")
        }
    }

    /// Field report E1: a chip that refuses a length in plain and keeps its counter is read on with shorter pieces.
    @Test func aBareWrongLengthIsReadOnWithHalf() async throws {
        let chip = SecuredChip(files: SpecimenFiles.all) { _, command, honest in
            command.ins == 0xB0 && (command.ne ?? 0) > 128 ? .bare([0x67, 0x00]) : .plain(honest)
        }
        let model = try await read(chip, [.com, .dg1, .dg2])
        #expect(model.dataGroupReadStatus[.dg2] == .read)
        #expect(model.rawDataGroups[.dg2] == Data(SpecimenFiles.dg2))
    }

    /// Field report E3: 6988 in plain says that the channel is gone; what was read before stays.
    @Test func aDeadChannelEndsTheReadAndKeepsWhatWasRead() async throws {
        let chip = SecuredChip(files: SpecimenFiles.withDG3) { _, command, honest in
            command.ins == 0xB0 && (command.ne ?? 0) > 128 ? .bare([0x69, 0x88]) : .plain(honest)
        }
        let model = try await read(chip, [.com, .dg1, .dg2, .dg3])
        #expect(model.dataGroupReadStatus == [.com: .read, .dg1: .read, .dg2: .failed, .dg3: .notRead])
        #expect(model.problems.first?.kind == .channel)
    }

    @Test func aChangedAnswerEndsTheReadOfDG1WithTheChannelsError() async throws {
        let chip = SecuredChip(files: SpecimenFiles.all) { _, command, honest in
            command.ins == 0xB0 && command.p2 == 4 ? .bare([UInt8](repeating: 0x87, count: 20) + [0x90, 0x00]) : .plain(honest)
        }
        await #expect(throws: NFCError.secureMessagingError("")) { try await read(chip, [.dg1]) }
    }

    @Test func aFileThatIsNotWhatItShouldBeIsFailedAndKept() async throws {
        var files = SpecimenFiles.all
        files[.dg2] = octets("7503010203")
        let model = try await read(SecuredChip(files: files), [.com, .dg1, .dg2])
        #expect(model.dataGroupReadStatus[.dg2] == .failed)
        #expect(model.rawDataGroups[.dg2] == data("7503010203"))
        files[.dg1] = octets("6103010203")
        let chip = SecuredChip(files: files)
        await #expect(throws: NFCError.dataGroupParseFailed("")) { try await read(chip, [.com, .dg1]) }
    }

    @Test func fillerAfterAFileIsNotRead() async throws {
        var files = SpecimenFiles.all
        files[.dg1] = SpecimenFiles.dg1 + [UInt8](repeating: 0, count: 50)
        #expect(try await read(SecuredChip(files: files), [.dg1]).rawDataGroups[.dg1] == Data(SpecimenFiles.dg1))
    }

    @Test func aFileOverItsLimitIsRefused() async throws {
        var files = SpecimenFiles.all
        files[.dg13] = octets("6D830100F0") + [UInt8](repeating: 0, count: 0x100F0)
        let chip = SecuredChip(files: files)
        let model = try await read(chip, [.dg1, .dg13])
        #expect(model.dataGroupReadStatus[.dg13] == .failed)
        #expect(chip.commands.last?.ne == 4)
    }

    @Test func aFileBeyond32KilobytesIsReadWithTheOddInstruction() async throws {
        var files = SpecimenFiles.all
        let image = octets("FFD8FFE0") + (0..<0x1_2000).map { UInt8(truncatingIfNeeded: $0 &* 5) }
        files[.dg2] = TLV.encode(0x75, TLV.encode(0x7F61, octets("020101") + TLV.encode(0x7F60, TLV.encode(0x5F2E, image))))
        let model = try await read(SecuredChip(files: files), [.com, .dg1, .dg2])
        #expect(model.faceImageData == Data(image))
    }

    /// R11: an offer that is not taken has its own line. This chip offers PACE and does not know it.
    @Test func aPACEOfferThatFailsIsNamedAndBACFollows() async throws {
        let lines = Mutex<[String]>([])
        let chip = SecuredChip(files: SpecimenFiles.all, cardAccess: octets("31143012060A04007F00070202040404020102020112"))
        let model = try await read(chip, [.com, .dg1]) { line in lines.withLock { $0.append(line) } }
        #expect(model.cardAccess?.first?.parameterId == 18)
        #expect(model.securityReport.cardAccess.status == .succeeded)
        #expect(model.securityReport.pace.status == .fallback)
        #expect(
            lines.withLock { $0 }.prefix(3) == [
                "access  EF.CardAccess: PACE-ECDH-IM-AES-CBC-CMAC-256, parameters 18",
                "access  PACE: FAILED 6D00 unknown command to MSE:Set AT",
                "access  BAC: keys agreed; PACE was offered and not used",
            ])
    }

    /// EF.CVCA has the identifier of EF.CardAccess in the application; whatever stands there, the read goes on.
    @Test(arguments: ["42094445435643413030303100", "3180", "31FF", "00", "318400FFFFFF"])
    func anUnreadableCardAccessIsHarmless(file: String) async throws {
        let model = try await read(SecuredChip(files: SpecimenFiles.all, cardAccess: octets(file)), [.dg1])
        #expect(model.securityReport.cardAccess.status == .failed)
        #expect(model.cardAccess == nil)
        #expect(model.dataGroupReadStatus == [.dg1: .read])
    }

    @Test func aCancelledTaskSendsNoMore() async throws {
        let chip = SecuredChip(files: SpecimenFiles.all) { count, _, honest in
            if count == 6 { withUnsafeCurrentTask { $0?.cancel() } }
            return .plain(honest)
        }
        let task = Task { try await read(chip, [.com, .dg1]) }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(chip.commands.count == 6)
    }

    /// A replay ends a call with an error of its own, also in the middle of a file after DG1.
    @Test func anErrorThatIsNotTheCardsEndsTheWholeRead() async throws {
        struct Divergence: Error {}
        let chip = SecuredChip(files: SpecimenFiles.withDG3)
        let stopping = StoppingTransport(chip, at: 13, with: Divergence())
        await #expect(throws: Divergence.self) { try await read(stopping, [.com, .dg1, .dg2]) }
        let other = SecuredChip(files: SpecimenFiles.withDG3)
        let cancelled = StoppingTransport(other, at: 13, with: TransportError(.cancelled))
        await #expect(throws: NFCError.sessionInvalidatedByCaller) { try await read(cancelled, [.com, .dg1, .dg2]) }
    }

    @Test func aDrawThatIsMissingComesThrough() async throws {
        let chip = SecuredChip(files: SpecimenFiles.all)
        let environment = CardEnvironment(random: FixedRandom(draws: [:]))
        await #expect(throws: EnvironmentError(code: .drawNotRecorded, detail: "")) {
            try await CardEnvironment.with(environment) {
                try await CoreExtendedNFC.readPassport(transport: chip, mrzKey: AppendixD.mrzKey, dataGroups: [.dg1])
            }
        }
    }
}

/// Throws at the N-th command instead of sending it.
private final class StoppingTransport: NFCTagTransport {
    private let chip: any NFCTagTransport
    private let stop: Int
    private let error: any Error
    private let count = Mutex(0)

    init(_ chip: any NFCTagTransport, at stop: Int, with error: any Error) {
        self.chip = chip
        self.stop = stop
        self.error = error
    }

    var identifier: Data { chip.identifier }
    func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("send") }
    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let number = count.withLock { count in
            count += 1
            return count
        }
        if number == stop { throw error }
        return try await chip.sendAPDU(apdu)
    }
}
