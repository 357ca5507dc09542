// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import Octets
import TagTransport

extension PassportRequest {
    /// Whether the chip shall prove that it is no copy.
    var wantsProof: Bool { performActiveAuth || terminal != nil }
}

/// What chip and terminal prove to each other once the channel is open: Chip, Active and Terminal Authentication.
extension PassportReading {
    // MARK: Chip authentication mapping

    /// Reads EF.CardSecurity in the channel, before the application is selected, when PACE brought a proof that needs it.
    mutating func readCardSecurity(over channel: SecureMessagingTransport) async throws {
        guard let pace, let proof = pace.outcome.chipProof else { return }
        let name = "EF.CardSecurity"
        do {
            let command = CommandAPDU(cla: 0, ins: 0xA4, p1: 0x02, p2: 0x0C, data: Data([0x01, 0x1D]))
            let answer = try await Self.exchange(command, over: channel)
            guard answer.isSuccess else {
                throw FileReadError(.refused(answer.statusWord), "\(name): \(hexText(answer.statusWord)) to SELECT")
            }
            var plan = FileReadPlan(name: name, tag: 0x30, limit: 64 << 10, chunk: Self.aesChunk)
            let security = try CardSecurity(try await read(&plan, over: channel, show: .read))
            cardSecurity = security
            show(.read, name, .done, bytesText(plan.octets.count), plan)
            report.chipAuthentication = try verify(proof, pace.offer, security)
        } catch {
            guard Self.belongsToTheCard(error) || error is LDSError || error is CryptoError else { throw error }
            // PACE stands as generic mapping would; DG14 may still prove the chip.
            report.chipAuthentication = PassportStage(.fallback, "chip authentication mapping is not proven: \(error)")
            show(.read, name, .failed, "FAILED, \(error)")
        }
        show(
            .access, "chip", report.chipAuthentication.status == .succeeded ? .done : .failed,
            report.chipAuthentication.detail ?? "")
    }

    private func verify(_ proof: PACE.ChipProof, _ offer: PACEOffer, _ security: CardSecurity) throws -> PassportStage {
        let keys = security.securityInfos.filter { info in
            guard case .chipAuthenticationPublicKey(let content) = info.content else { return false }
            return content.keyId == nil || content.keyId == offer.parameterId
        }
        guard let info = keys.first else {
            return PassportStage(.failed, "EF.CardSecurity has no key for parameters \(offer.parameterId.map { "\($0)" } ?? "")")
        }
        let key = try KeyAgreementPublicKey(info)
        guard
            try offer.parameters.verifiesChipAuthentication(
                data: proof.data, staticKey: key.octets, mappingKey: proof.mappingKey)
        else { return PassportStage(.failed, "the chip does not have the private key of EF.CardSecurity") }
        let today = CertificateTime(nanoseconds: try CardEnvironment.current.calendarNanoseconds())
        let signature = PassiveAuthentication.verify(cardSecurity: security, anchors: trustAnchors, today: today)
        let proven = "proven by chip authentication mapping"
        switch signature.stage.status {
        case .succeeded: return PassportStage(.succeeded, proven)
        case .failed: return PassportStage(.failed, "\(proven) of a key that nobody vouches for: \(signature.detail)")
        default: return PassportStage(.succeeded, "\(proven); EF.CardSecurity: \(signature.detail)")
        }
    }

    // MARK: Chip Authentication

    /// Chip Authentication by what DG14 offers; the channel goes on under the new keys. A refusal leaves the old channel.
    mutating func authenticateChip(_ contents: Contents, over channel: SecureMessagingTransport) async throws {
        guard request.wantsProof, ending == nil, let file = files[.dg14] else { return }
        // Mapping has proven it already; a terminal still needs the key that this agreement makes.
        if report.chipAuthentication.status == .succeeded, request.terminal == nil { return }
        guard let infos = try? SecurityInfo.parse(dataGroup14: Array(file)) else { return }
        let (offers, unusable) = ChipAuthenticationOffer.offers(in: infos)
        guard !offers.isEmpty else {
            if report.chipAuthentication.status == .skipped || report.chipAuthentication.status == .pending {
                report.chipAuthentication = PassportStage(
                    unusable.isEmpty ? .notAdvertised : .notSupported,
                    unusable.isEmpty ? "DG14 has no key for it" : unusable.joined(separator: "; "))
            }
            return
        }
        var refusals: [String] = []
        for offer in offers.prefix(3) {
            var run = ChipAuthentication(offer)
            do {
                let keys = try await perform(&run, over: channel)
                try await begin(keys, offer, run, over: channel)
                return
            } catch let error as ChipAuthenticationError {
                refusals.append("\(offer.name): \(error.detail)")
            } catch {
                guard Self.belongsToTheCard(error) else { throw error }
                let detail = "\(offer.name): \(error)"
                report.chipAuthentication = PassportStage(.failed, detail)
                show(.access, "chip", .failed, "FAILED, Chip Authentication, \(detail)")
                ending = NFCError.secureMessagingError("Chip Authentication, \(detail)")
                return
            }
        }
        report.chipAuthentication = PassportStage(.failed, refusals.joined(separator: "; "))
        show(.access, "chip", .failed, "FAILED, Chip Authentication, \(refusals.joined(separator: "; "))")
    }

    private func perform(
        _ run: inout ChipAuthentication, over channel: SecureMessagingTransport
    ) async throws -> (encryption: [UInt8], authentication: [UInt8]) {
        var action = try run.begin()
        while true {
            switch action {
            case .send(let command): action = try run.received(try await Self.exchange(command, over: channel))
            case .draw(let label, let count):
                action = try run.drew(try CardEnvironment.current.randomOctets(count, label: label))
            case .agreed(let encryption, let authentication): return (encryption, authentication)
            }
        }
    }

    /// Goes over to the new keys. The first valid answer under them is the proof (9303-11 6.2.2), so one is asked for.
    private mutating func begin(
        _ keys: (encryption: [UInt8], authentication: [UInt8]), _ offer: ChipAuthenticationOffer, _ run: ChipAuthentication,
        over channel: SecureMessagingTransport
    ) async throws {
        let environment = CardEnvironment.current
        environment.logKey("chipAuthentication.ksEnc", keys.encryption)
        environment.logKey("chipAuthentication.ksMac", keys.authentication)
        channel.restart(with: try Self.channel(offer.algorithm, keys.encryption, keys.authentication))
        _ = try await channel.sendAPDU(CommandAPDU(cla: 0, ins: 0xA4, p1: 0x02, p2: 0x0C, data: Data([0x01, 0x0E])))
        terminalKey = run.terminalIdentity
        let remarks = run.remarks.isEmpty ? "" : "; " + run.remarks.joined(separator: "; ")
        report.chipAuthentication = PassportStage(.succeeded, offer.name + remarks)
        show(.access, "chip", .done, "Chip Authentication, \(offer.name)")
        try await authenticateTerminal(over: channel)
    }

    // MARK: Active Authentication

    /// Active Authentication with the key of DG15.
    mutating func authenticateActively(over channel: SecureMessagingTransport) async throws {
        guard request.performActiveAuth, ending == nil, let file = files[.dg15] else { return }
        let key: SubjectPublicKeyInfo
        do { key = try ActiveAuthenticationPublicKey.publicKeyInfo(dataGroup15: Array(file)) } catch {
            return noteActive(.unsupportedKeyType, error.detail)
        }
        let infos = files[.dg14].flatMap { try? SecurityInfo.parse(dataGroup14: Array($0)) } ?? []
        let algorithm = infos.lazy.compactMap { info -> String? in
            if case .activeAuthentication(let content) = info.content { content.signatureAlgorithm } else { nil }
        }.first
        var run = ActiveAuthentication(
            key: key, algorithm: algorithm, longestShortAnswer: channel.cipher == .tripleDES ? Self.tripleDESChunk : Self.aesChunk
        )
        var action = run.begin()
        do {
            while true {
                switch action {
                case .drawRandom: action = run.drew(try CardEnvironment.current.randomOctets(8, label: "aa.rndIFD"))
                case .send(let command): action = run.received(try await Self.exchange(command, over: channel))
                case .finished(let outcome): return noteActive(outcome.status, outcome.detail)
                }
            }
        } catch {
            guard Self.belongsToTheCard(error) else { throw error }
            noteActive(.commandFailed, "\(error)")
            if case .ended = channel.state { ending = NFCError.facing(error) }
        }
    }

    private mutating func noteActive(_ status: ActiveAuthenticationStatus, _ detail: String) {
        activeAuthResult = status
        let stage: PassportStageStatus =
            switch status {
            case .verified: .succeeded
            case .notImplemented, .unsupportedKeyType: .notSupported
            case .failed, .commandFailed: .failed
            }
        report.activeAuthentication = PassportStage(stage, detail)
        show(.access, "chip", stage == .succeeded ? .done : .failed, "Active Authentication: \(detail)")
    }

    // MARK: Terminal Authentication

    /// Shows the chip that the terminal may read fingers and irises. What the chip refuses, it says again when they are read.
    private mutating func authenticateTerminal(over channel: SecureMessagingTransport) async throws {
        guard let credentials = request.terminal, let terminalKey, let identity = chipName() else { return }
        do {
            var references = pace?.outcome.authorityReferences ?? []
            if references.isEmpty { references = try await readAuthorities(over: channel) }
            var run = try TerminalAuthentication(
                credentials: credentials, references: references, chipIdentity: identity, compressedKey: terminalKey)
            var action = try run.begin()
            while true {
                switch action {
                case .send(let command): action = try run.received(try await Self.exchange(command, over: channel))
                case .drawRandom(let count):
                    action = try run.drew(try CardEnvironment.current.randomOctets(count, label: "ta.signature"))
                case .finished:
                    report.terminalAuthentication = PassportStage(.succeeded)
                    show(.access, "terminal", .done, "the chip took the terminal's certificates and signature")
                    return
                }
            }
        } catch {
            guard Self.belongsToTheCard(error) || error is TerminalAuthenticationError || error is LDSError else { throw error }
            report.terminalAuthentication = PassportStage(.failed, "\(error)")
            show(.access, "terminal", .failed, "FAILED, Terminal Authentication, \(error)")
            if case .ended = channel.state { ending = NFCError.facing(error) }
        }
    }

    /// ID_PICC: the chip's key of PACE, or the document number with its check digit (9303-11 7.1.3).
    private func chipName() -> [UInt8]? {
        if let pace { return pace.outcome.chipIdentity }
        guard case .mrz(let key) = request.access, key.utf8.count > 14 else { return nil }
        return Array(key.utf8.dropLast(14))
    }

    /// The authorities that the chip trusts, by EF.CVCA. The file is no data object; it has 36 octets (9303-11 7.1.5).
    private func readAuthorities(over channel: SecureMessagingTransport) async throws -> [[UInt8]] {
        let select = CommandAPDU(cla: 0, ins: 0xA4, p1: 0x02, p2: 0x0C, data: Data([0x01, 0x1C]))
        let selected = try await Self.exchange(select, over: channel)
        guard selected.isSuccess else {
            throw FileReadError(.refused(selected.statusWord), "EF.CVCA: \(hexText(selected.statusWord)) to SELECT")
        }
        let answer = try await Self.exchange(CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: 36), over: channel)
        guard answer.isSuccess || answer.statusWord == 0x6282 else {
            throw FileReadError(.refused(answer.statusWord), "EF.CVCA: \(hexText(answer.statusWord)) to READ BINARY")
        }
        return try TerminalAuthentication.references(inCVCA: Array(answer.data))
    }

    // MARK: What was not done

    /// Says of each step that was not performed why.
    mutating func noteChip(_ contents: Contents) {
        if report.chipAuthentication.status == .skipped {
            if contents.has(.dg14) == false {
                report.chipAuthentication = PassportStage(.notAdvertised, "EF.SOD does not list DG14")
            } else if request.wantsProof, request.dataGroups.contains(.dg14), files[.dg14] == nil {
                report.chipAuthentication = PassportStage(.skipped, "DG14 was not read")
            }
        }
        guard request.performActiveAuth, activeAuthResult == nil else { return }
        if contents.has(.dg15) == false {
            report.activeAuthentication = PassportStage(.notAdvertised, "EF.SOD does not list DG15")
        } else if statuses[.dg15] != nil {
            report.activeAuthentication = PassportStage(.skipped, "DG15 was not read")
        }
    }
}
