// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import TagTransport

/// What opens the chip. PACE, and with it CAN, PIN and PUK, will stand beside the MRZ.
enum PassportAccess: Sendable {
    case mrz(String)
}

/// One read of a travel document, from EF.CardAccess to the last data group (ICAO 9303-11 4.2).
struct PassportReading {
    private let link: PassportLink
    private let access: PassportAccess
    private let requested: Set<DataGroupId>
    private let performActiveAuth: Bool
    private let trustAnchorsDER: [Data]
    private var trustAnchors = TrustAnchors([])
    private let onProgress: (@Sendable (String) -> Void)?
    private let observer = PassportProgress.observer

    private var exchangesShown = 0
    private var cardAccessRaw: Data?
    private var report = PassportSecurityReport()
    private var files: [DataGroupId: Data] = [:]
    private var statuses: [DataGroupId: DataGroupReadStatus] = [:]
    private var problems: [PassportProblem] = []
    /// What the facade throws when a file that must be there is not; the first such error of each file.
    private var failures: [DataGroupId: any Error] = [:]
    private var firstFailure: (any Error)?
    /// Why nothing can be read any more.
    private var ending: (any Error)?

    init(
        transport: any NFCTagTransport, access: PassportAccess, dataGroups: [DataGroupId], performActiveAuth: Bool,
        trustAnchorsDER: [Data], onProgress: (@Sendable (String) -> Void)?
    ) {
        link = PassportLink(transport)
        self.access = access
        requested = Set(dataGroups)
        self.performActiveAuth = performActiveAuth
        self.trustAnchorsDER = trustAnchorsDER
        self.onProgress = onProgress
    }

    /// - Throws: as ``CoreExtendedNFC/readPassport(transport:mrzKey:dataGroups:performActiveAuth:trustAnchorsDER:onProgress:)``, before
    ///   errors of transports and machines are turned into ``NFCError``.
    mutating func run() async throws -> PassportModel {
        guard !requested.isEmpty else { throw NFCError.unsupportedOperation("no data group was asked for") }
        do { trustAnchors = try TrustAnchors(files: trustAnchorsDER.map { Array($0) }) } catch {
            throw NFCError.unsupportedOperation("\(error)")
        }
        try await readCardAccess()
        // PACE belongs here, before the application is selected; the application is then selected under secure messaging.
        try await selectApplication()
        let channel = try await openBasicAccess()
        try await readFiles(over: channel)
        return try model()
    }

    // MARK: Access

    /// Reads EF.CardAccess in plain. Whatever the card answers, the read goes on.
    private mutating func readCardAccess() async throws {
        // Cards differ in the form in which they let the master file be selected.
        let masterFile = Data([0x3F, 0x00])
        for select in [
            CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0x0C), CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0x0C, data: masterFile),
            CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0x00, data: masterFile, le: 0),
        ] {
            if try await link.sendAPDU(select).isSuccess { break }
        }
        let name = "EF.CardAccess"
        let answer = try await link.sendAPDU(CommandAPDU(cla: 0, ins: 0xA4, p1: 0x02, p2: 0x0C, data: Data([0x01, 0x1C])))
        guard answer.isSuccess else {
            report.cardAccess = PassportStage(.notSupported, "\(hexText(answer.statusWord)) \(statusText(answer.statusWord))")
            report.pace = PassportStage(.notAdvertised)
            return
        }
        var plan = FileReadPlan(name: name, tag: 0x31, limit: 64 << 10, chunk: Self.plainChunk)
        do {
            cardAccessRaw = Data(try await read(&plan, over: link, show: nil))
            let infos = try SecurityInfo.parse(Array(cardAccessRaw ?? Data()))
            report.cardAccess = PassportStage(.succeeded)
            show(.access, name, .done, "\(infos.count == 1 ? "1 protocol" : "\(infos.count) protocols") offered")
            if infos.contains(where: \.isPACE) {
                report.pace = PassportStage(.notSupported, "offered and not used: this version opens chips by BAC only")
                show(.access, "PACE", .failed, "offered and not used")
            } else {
                report.pace = PassportStage(.notAdvertised)
            }
        } catch let error as FileReadError {
            noteCardAccess(error.detail)
        } catch let error as LDSError {
            noteCardAccess(error.detail)
        }
    }

    private mutating func noteCardAccess(_ detail: String) {
        report.cardAccess = PassportStage(.failed, detail)
        report.pace = PassportStage(.notAdvertised)
        show(.access, "EF.CardAccess", .failed, "FAILED, \(detail)")
    }

    private mutating func selectApplication() async throws {
        let aid = Data([0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01])
        let answer = try await link.sendAPDU(CommandAPDU(cla: 0, ins: 0xA4, p1: 0x04, p2: 0x0C, data: aid))
        switch answer.statusWord {
        case 0x9000: return
        case 0x6A82: throw NFCError.applicationNotFound(aid: aid)
        default: throw NFCError.unexpectedStatusWord(answer.sw1, answer.sw2)
        }
    }

    private mutating func openBasicAccess() async throws -> SecureMessagingTransport {
        let key =
            switch access {
            case .mrz(let key): key
            }
        let environment = CardEnvironment.current
        var control = try BasicAccessControl(mrzKey: key)
        var action = try control.begin()
        do {
            while true {
                switch action {
                case .send(let command):
                    action = try control.received(try await link.sendAPDU(command))
                case .drawRandom:
                    let random = try environment.randomOctets(8, label: "bac.rndIFD")
                    let keyingMaterial = try environment.randomOctets(16, label: "bac.kIFD")
                    // Whoever keeps keys gets this one before the command that it protects is sent.
                    environment.logKey("bac.seed", control.seed)
                    action = try control.drew(random: random, keyingMaterial: keyingMaterial)
                case .agreed(let keys):
                    environment.logKey("secureMessaging.enc", keys.encryption)
                    environment.logKey("secureMessaging.mac", keys.authentication)
                    environment.logKey("secureMessaging.ssc", keys.sendSequenceCounter)
                    let channel = try SecureMessaging(
                        cipher: .tripleDES, encryptionKey: keys.encryption, authenticationKey: keys.authentication,
                        sendSequenceCounter: keys.sendSequenceCounter)
                    report.bac = PassportStage(.succeeded)
                    show(.access, "BAC", .done, "keys agreed, secure messaging with 3DES")
                    return SecureMessagingTransport(over: link, isT0: link.isT0, channel)
                }
            }
        } catch let error as BasicAccessControlError {
            show(.access, "BAC", .failed, "FAILED, \(error.detail)")
            throw error
        }
    }

    // MARK: Files

    private mutating func readFiles(over channel: SecureMessagingTransport) async throws {
        if requested.contains(.com) { try await readFile(.com, over: channel) }
        if requested.contains(.sod) { try await readFile(.sod, over: channel) }
        let common = files[.com].flatMap { try? CommonData(Array($0)) }
        let groups = DataGroupId.allCases.filter { $0.number != nil && requested.contains($0) }
        if let common, !requested.contains(.sod), groups.contains(where: { !common.dataGroups.contains($0) }) {
            try await readFile(.sod, over: channel)
        }
        let hashes = files[.sod].flatMap { try? SecurityObject(Array($0)) }
        for group in groups.sorted(by: { Self.place(of: $0) < Self.place(of: $1) }) {
            // Only EF.SOD's list of hashes can rule a data group out: EF.COM is not signed and often wrong.
            if let hashes, !hashes.lists(group), common?.dataGroups.contains(group) != true {
                statuses[group] = .notPresent
                failures[group] = NFCError.dataGroupNotAvailable("\(group.displayName): EF.SOD does not list it")
                show(.read, group.displayName, .failed, "not in the document: EF.SOD does not list it")
            } else {
                try await readFile(group, over: channel)
            }
        }
        noteChip(common, hashes)
    }

    /// DG1 comes first, DG15 before the two that most terminals may not read.
    private static func place(of group: DataGroupId) -> Int {
        let number = group.number ?? 0
        return group.needsExtendedAccessControl ? 100 + number : group == .dg15 ? 50 : number
    }

    private mutating func noteChip(_ common: CommonData?, _ hashes: SecurityObject?) {
        func isListed(_ group: DataGroupId) -> Bool? {
            guard let hashes else { return common?.dataGroups.contains(group) == true ? true : nil }
            return hashes.lists(group) || common?.dataGroups.contains(group) == true
        }
        report.chipAuthentication =
            isListed(.dg14) == false
            ? PassportStage(.notAdvertised, "EF.SOD does not list DG14") : PassportStage(.skipped, "not performed")
        if performActiveAuth, isListed(.dg15) == false {
            report.activeAuthentication = PassportStage(.notAdvertised, "EF.SOD does not list DG15")
        } else if performActiveAuth {
            report.activeAuthentication = PassportStage(.notSupported, "not performed by this version")
        }
    }

    /// Reads one file and notes what became of it. Throws only what ends the whole read.
    private mutating func readFile(_ file: DataGroupId, over channel: SecureMessagingTransport) async throws {
        guard ending == nil else {
            statuses[file] = .notRead
            failures[file] = ending
            return
        }
        var plan = FileReadPlan(
            name: file.displayName, tag: UInt32(file.tag), limit: file.sizeLimit,
            chunk: channel.cipher == .tripleDES ? Self.tripleDESChunk : Self.aesChunk)
        do {
            try await select(file, over: channel)
            let octets = try await read(&plan, over: channel, show: .read)
            files[file] = Data(octets)
            statuses[file] = .read
            show(.read, file.displayName, .done, bytesText(octets.count), plan)
        } catch {
            guard Self.belongsToTheCard(error) else { throw error }
            note(error, file, plan)
        }
        if case .ended(let reason) = channel.state, ending == nil {
            ending = NFCError.secureMessagingError("secure messaging ended: \(reason)")
        }
    }

    /// Whether an error tells of the card or the link to it. Every other, such as a cancellation or the end of a replay, ends the
    /// whole read.
    private static func belongsToTheCard(_ error: any Error) -> Bool {
        switch error {
        case let error as TransportError: error.case != .cancelled && error.case != .readersForbidden
        case let error as NFCError: !error.isNFCCancellation
        default: error is FileReadError || error is SecureMessagingError
        }
    }

    private func select(_ file: DataGroupId, over channel: SecureMessagingTransport) async throws {
        let identifier = [UInt8(truncatingIfNeeded: file.fileIdentifier >> 8), UInt8(truncatingIfNeeded: file.fileIdentifier)]
        let command = CommandAPDU(cla: 0, ins: 0xA4, p1: 0x02, p2: 0x0C, data: Data(identifier))
        let answer = try await Self.exchange(command, over: channel)
        guard answer.isSuccess else {
            let word = answer.statusWord
            throw FileReadError(.refused(word), "\(file.displayName): \(hexText(word)) \(statusText(word)) to SELECT")
        }
    }

    private mutating func read(
        _ plan: inout FileReadPlan, over transport: any NFCTagTransport, show stage: PassportProgress.Stage?
    ) async throws -> [UInt8] {
        while true {
            switch try plan.next() {
            case .finished(let octets): return octets
            case .send(let command):
                try plan.received(try await Self.exchange(command, over: transport))
                if let stage { show(stage, plan.name, .running, "", plan) }
            }
        }
    }

    /// One exchange. A status word without secure messaging that leaves the channel open is an answer like another.
    private static func exchange(_ command: CommandAPDU, over transport: any NFCTagTransport) async throws -> ResponseAPDU {
        do {
            return try await transport.sendAPDU(command)
        } catch let error as SecureMessagingError {
            guard case .bareStatusWord(let word) = error.code,
                case .ready? = (transport as? SecureMessagingTransport)?.state
            else { throw error }
            return ResponseAPDU(statusWord: word)
        }
    }

    private mutating func note(_ error: any Error, _ file: DataGroupId, _ plan: FileReadPlan) {
        var status = DataGroupReadStatus.failed
        var kind = PassportProblem.Kind.broken
        var code: String?
        var side = FaultSide.card
        let facing: any Error
        var detail: String
        switch error {
        case let error as FileReadError:
            detail = error.detail
            if case .refused(let word) = error.code {
                kind = .refused
                code = hexText(word)
                status = Self.status(ofRefusal: word)
                facing = NFCError.dataGroupNotAvailable(error.detail)
            } else {
                facing = NFCError.dataGroupParseFailed(error.detail)
            }
        case let error as SecureMessagingError:
            kind = .channel
            detail = "\(file.displayName): \(error.detail)"
            facing = NFCError.secureMessagingError(detail)
            ending = facing
        default:
            facing = NFCError.facing(error)
            kind = .lost
            code = (facing as? NFCError)?.caseName
            side = .outside
            detail = "\(file.displayName): \(facing)"
            ending = facing
        }
        statuses[file] = status
        failures[file] = facing
        firstFailure = firstFailure ?? facing
        problems.append(
            PassportProblem(
                dataGroup: file, kind: kind, code: code, side: side, detail: detail,
                bytesRead: plan.octets.count, bytesTotal: plan.total))
        let place = plan.total.map { " at \(grouped(plan.octets.count)) of \(bytesText($0))" } ?? ""
        let refusal = kind == .refused ? "refused, \(code ?? "")" : "FAILED"
        show(.read, file.displayName, .failed, refusal + place, plan)
    }

    private static func status(ofRefusal word: UInt16) -> DataGroupReadStatus {
        switch word {
        case 0x6A82, 0x6A83, 0x6A88: .notPresent
        case 0x6982, 0x6983, 0x6985, 0x6986: .unavailable
        default: .failed
        }
    }

    // MARK: Outcome

    private mutating func model() throws -> PassportModel {
        guard !files.isEmpty else {
            throw firstFailure ?? failures.values.first ?? NFCError.dataGroupNotAvailable("no file could be read")
        }
        var model = PassportModel(
            rawDataGroups: files, cardAccessRaw: cardAccessRaw, performPassiveAuthentication: false, dataGroupReadStatus: statuses
        )
        model.securityReport = report
        if files[.sod] != nil {
            // Certificates are judged at the environment's calendar; a replay that has none recorded stops here and says so.
            let today = CertificateTime(nanoseconds: try CardEnvironment.current.calendarNanoseconds())
            model.authenticatePassively(anchors: trustAnchors, today: today)
        }
        model.problems = problems + model.problems
        if requested.contains(.dg1), model.dataGroupReadStatus[.dg1] != .read {
            let reason = model.problems.first { $0.dataGroup == .dg1 }?.detail ?? "DG1 was not read"
            throw failures[.dg1] ?? NFCError.dataGroupParseFailed(reason)
        }
        let count = requested.filter { model.dataGroupReadStatus[$0] == .read }.count
        let all = requested.count
        show(.result, "", count == all ? .done : .failed, "\(count) of \(all) \(all == 1 ? "file" : "files") read")
        return model
    }

    private mutating func show(
        _ stage: PassportProgress.Stage, _ subject: String, _ state: PassportProgress.State, _ text: String,
        _ plan: FileReadPlan? = nil
    ) {
        guard onProgress != nil || observer != nil else { return }
        let progress = PassportProgress(
            stage: stage, subject: subject, state: state, text: text, bytesDone: plan?.octets.count, bytesTotal: plan?.total,
            exchanges: link.exchanges - exchangesShown)
        observer?.see(progress)
        guard state != .running else { return }
        exchangesShown = link.exchanges
        onProgress?(progress.line)
    }

    /// Plain octets in a protected short answer: 231 with triple DES, 223 with AES.
    private static let tripleDESChunk = 231
    private static let aesChunk = 223
    private static let plainChunk = 231
}
