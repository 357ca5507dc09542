// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import TagTransport

/// What a passport read is asked for.
struct PassportRequest: Sendable {
    var access: PassportAccess
    var dataGroups: Set<DataGroupId>
    var performActiveAuth = true
    /// In DER or PEM, or master lists.
    var trustAnchorsDER: [Data] = []
    var terminal: TerminalCredentials?
}

/// One read of a travel document, from EF.CardAccess to the last data group (ICAO 9303-11 4.2).
struct PassportReading {
    let link: PassportLink
    let request: PassportRequest
    private let onProgress: (@Sendable (String) -> Void)?
    private let observer = PassportProgress.observer

    private var exchangesShown = 0
    var cardAccessRaw: Data?
    var report = PassportSecurityReport()
    var files: [DataGroupId: Data] = [:]
    var statuses: [DataGroupId: DataGroupReadStatus] = [:]
    var problems: [PassportProblem] = []
    /// What the facade throws when a file that must be there is not; the first such error of each file.
    var failures: [DataGroupId: any Error] = [:]
    var firstFailure: (any Error)?
    /// Why nothing can be read any more.
    var ending: (any Error)?
    /// Octets to ask for at a time, once a file was read in smaller pieces than could have been.
    var learntChunk: Int?
    /// Octets to ask for at a time in a long file; nil where no extended length may be used.
    var longChunk: Int?
    /// Whether the chip was opened a second time; it is not opened a third time.
    var wasReopened = false

    /// What PACE told: for chip authentication mapping and for Terminal Authentication.
    var pace: (offer: PACEOffer, outcome: PACE.Outcome)?
    var cardSecurity: CardSecurity?
    /// The terminal's key of Chip Authentication, compressed; nil until it was done.
    var terminalKey: [UInt8]?
    var activeAuthResult: ActiveAuthenticationStatus?
    private(set) var trustAnchors = TrustAnchors([])

    init(transport: any NFCTagTransport, _ request: PassportRequest, onProgress: (@Sendable (String) -> Void)?) {
        link = PassportLink(transport)
        self.request = request
        self.onProgress = onProgress
    }

    /// - Throws: as ``CoreExtendedNFC/readPassport(transport:access:dataGroups:performActiveAuth:trustAnchorsDER:terminal:onProgress:)``,
    ///   before errors of transports and machines are turned into ``NFCError``.
    mutating func run() async throws -> PassportModel {
        guard !request.dataGroups.isEmpty else { throw NFCError.unsupportedOperation("no data group was asked for") }
        do { trustAnchors = try TrustAnchors(files: request.trustAnchorsDER.map { Array($0) }) } catch {
            throw NFCError.unsupportedOperation("\(error)")
        }
        longChunk = link.takesExtendedLength == true ? Self.longChunk : nil
        let channel = try await openChannel()
        try await readFiles(over: channel)
        return try model()
    }

    // MARK: Files

    private mutating func readFiles(over channel: SecureMessagingTransport) async throws {
        let requested = request.dataGroups
        if requested.contains(.com) { try await readFile(.com, over: channel) }
        if requested.contains(.sod) { try await readFile(.sod, over: channel) }
        let common = files[.com].flatMap { try? CommonData(Array($0)) }
        let groups = DataGroupId.allCases.filter { $0.number != nil && requested.contains($0) }
        if let common, !requested.contains(.sod), groups.contains(where: { !common.dataGroups.contains($0) }) {
            try await readFile(.sod, over: channel)
        }
        let contents = Contents(common: common, hashes: files[.sod].flatMap { try? SecurityObject(Array($0)) })
        for group in order(of: groups, contents) {
            switch group {
            case .dg14 where request.wantsProof || requested.contains(.dg14):
                try await readGroup(.dg14, contents, over: channel)
                try await authenticateChip(contents, over: channel)
            case .dg15:
                try await readGroup(.dg15, contents, over: channel)
                try await authenticateActively(over: channel)
            default: try await readGroup(group, contents, over: channel)
            }
        }
        noteChip(contents)
    }

    /// What EF.COM and EF.SOD list.
    struct Contents {
        let common: CommonData?
        let hashes: SecurityObject?

        /// Only EF.SOD's list of hashes can rule a data group out: EF.COM is not signed and often wrong. Nil when nobody can say.
        func has(_ group: DataGroupId) -> Bool? {
            if common?.dataGroups.contains(group) == true { return true }
            return hashes?.lists(group)
        }
    }

    /// The data groups in the order of reading: DG1 first; DG14 next where the chip shall prove itself, so that the rest comes through
    /// the channel of Chip Authentication; DG15 and Active Authentication after the others; the two last that most terminals may not read.
    private func order(of requested: [DataGroupId], _ contents: Contents) -> [DataGroupId] {
        var groups = requested
        if request.wantsProof, contents.has(.dg14) == true, !groups.contains(.dg14) { groups.append(.dg14) }
        if request.performActiveAuth, contents.has(.dg15) == true, !groups.contains(.dg15) { groups.append(.dg15) }
        let wantsProof = request.wantsProof
        func place(_ group: DataGroupId) -> Int {
            let number = (group.number ?? 0) * 2
            if group.needsExtendedAccessControl { return 100 + number }
            return group == .dg15 ? 50 : group == .dg14 && wantsProof ? 3 : number
        }
        return groups.sorted { place($0) < place($1) }
    }

    private mutating func readGroup(
        _ group: DataGroupId, _ contents: Contents, over channel: SecureMessagingTransport
    ) async throws {
        guard contents.has(group) == false else { return try await readFile(group, over: channel) }
        statuses[group] = .notPresent
        failures[group] = NFCError.dataGroupNotAvailable("\(group.displayName): EF.SOD does not list it")
        show(.read, group.displayName, .failed, "not in the document: EF.SOD does not list it")
    }

    /// Reads one file and notes what became of it. Throws only what ends the whole read.
    mutating func readFile(_ file: DataGroupId, over channel: SecureMessagingTransport) async throws {
        guard ending == nil else {
            statuses[file] = .notRead
            failures[file] = ending
            return
        }
        var plan = FileReadPlan(
            name: file.displayName, tag: UInt32(file.tag), limit: file.sizeLimit,
            chunk: min(channel.cipher == .tripleDES ? Self.tripleDESChunk : Self.aesChunk, learntChunk ?? .max),
            longChunk: longChunk)
        do {
            try await select(file, over: channel)
            let octets = try await read(&plan, over: channel, show: .read)
            learntChunk = plan.learntChunk ?? learntChunk
            files[file] = Data(octets)
            statuses[file] = .read
            show(.read, file.displayName, .done, bytesText(octets.count), plan)
        } catch {
            guard Self.belongsToTheCard(error) else { throw error }
            if try await reopen(after: error, in: plan, channel) { return try await readFile(file, over: channel) }
            note(error, file, plan)
        }
        if case .ended(let reason) = channel.state, ending == nil {
            ending = NFCError.secureMessagingError("secure messaging ended: \(reason)")
        }
    }

    /// Whether an error tells of the card or the link to it. Every other, such as a cancellation or the end of a replay, ends the
    /// whole read.
    static func belongsToTheCard(_ error: any Error) -> Bool {
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

    mutating func read(
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
    static func exchange(_ command: CommandAPDU, over transport: any NFCTagTransport) async throws -> ResponseAPDU {
        if let link = transport as? PassportLink { return try await link.exchange(command) }
        do {
            return try await transport.sendAPDU(command)
        } catch let error as SecureMessagingError {
            guard case .bareStatusWord(let word) = error.code,
                case .ready? = (transport as? SecureMessagingTransport)?.state
            else { throw error }
            return ResponseAPDU(statusWord: word)
        }
    }

    // MARK: Outcome

    mutating func model() throws -> PassportModel {
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
        model.activeAuthResult = activeAuthResult
        model.problems = problems + model.problems
        if request.dataGroups.contains(.dg1), model.dataGroupReadStatus[.dg1] != .read {
            let reason = model.problems.first { $0.dataGroup == .dg1 }?.detail ?? "DG1 was not read"
            throw failures[.dg1] ?? NFCError.dataGroupParseFailed(reason)
        }
        let count = request.dataGroups.filter { model.dataGroupReadStatus[$0] == .read }.count
        let all = request.dataGroups.count
        show(.result, "", count == all ? .done : .failed, "\(count) of \(all) \(all == 1 ? "file" : "files") read")
        return model
    }

    mutating func show(
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
    static let tripleDESChunk = 231
    static let aesChunk = 223
    static let plainChunk = 231
    /// Octets at a time of a long file from a chip that takes extended lengths; many readers hold 2,048 and a little.
    static let longChunk = 2_000
}
