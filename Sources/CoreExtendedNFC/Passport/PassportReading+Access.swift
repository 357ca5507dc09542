// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import TagTransport

/// The chip access procedure of ICAO 9303-11 4.2: PACE before the application is selected, Basic Access Control after it.
extension PassportReading {
    /// Opens the chip and selects the application.
    ///
    /// - Throws: ``NFCError``: `paceFailed` when PACE alone could have opened it; ``BasicAccessControlError``.
    mutating func openChannel() async throws -> SecureMessagingTransport {
        let offers = try await readCardAccess()
        if let channel = try await openByPACE(offers) {
            report.bac = PassportStage(.skipped, "PACE opened the chip")
            try await readCardSecurity(over: channel)
            try await selectApplication(over: channel)
            return channel
        }
        guard case .mrz(let key) = request.access else {
            let reason = report.pace.detail.map { ": \($0)" } ?? ""
            throw NFCError.paceFailed("the \(request.access.name) opens a chip by PACE only\(reason)")
        }
        try await selectApplication(over: link)
        return try await openByBasicAccess(key)
    }

    /// Reads EF.CardAccess in plain. Whatever the card answers, the read goes on.
    private mutating func readCardAccess() async throws -> [PACEOffer] {
        // Cards differ in the form in which they let the master file be selected.
        let masterFile = Data([0x3F, 0x00])
        for select in [
            CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0x0C), CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0x0C, data: masterFile),
            CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0x00, data: masterFile, le: 0),
        ] {
            if try await link.exchange(select).isSuccess {
                try await readCapabilities()
                break
            }
        }
        let name = "EF.CardAccess"
        let answer = try await link.exchange(CommandAPDU(cla: 0, ins: 0xA4, p1: 0x02, p2: 0x0C, data: Data([0x01, 0x1C])))
        // A card that has no such file says so; one that minds the way of selecting still has its short identifier.
        let byShortIdentifier = !answer.isSuccess && ![0x6A82, 0x6A83, 0x6A88].contains(answer.statusWord)
        guard answer.isSuccess || byShortIdentifier else {
            return noteNoCardAccess(answer.statusWord)
        }
        var plan = FileReadPlan(
            name: name, tag: 0x31, limit: 64 << 10, chunk: Self.plainChunk, shortIdentifier: byShortIdentifier ? 0x1C : nil)
        do {
            let octets = try await read(&plan, over: link, show: nil)
            cardAccessRaw = Data(octets)
            let infos = try SecurityInfo.parse(octets)
            let (usable, unusable) = PACEOffer.offers(in: infos)
            report.cardAccess = PassportStage(.succeeded)
            let count = infos.count == 1 ? "1 protocol" : "\(infos.count) protocols"
            show(.access, name, .done, usable.first?.name ?? "\(count) offered")
            if usable.isEmpty {
                report.pace = PassportStage(
                    unusable.isEmpty ? .notAdvertised : .notSupported, unusable.isEmpty ? nil : unusable.joined(separator: "; "))
                if !unusable.isEmpty {
                    show(.access, "PACE", .failed, "offered and not used: \(unusable.joined(separator: "; "))")
                }
            }
            return usable
        } catch let error as FileReadError {
            if byShortIdentifier, case .refused = error.code { return noteNoCardAccess(answer.statusWord) }
            return noteCardAccess(error.detail)
        } catch let error as LDSError {
            return noteCardAccess(error.detail)
        }
    }

    private mutating func noteNoCardAccess(_ word: UInt16) -> [PACEOffer] {
        report.cardAccess = PassportStage(.notSupported, "\(hexText(word)) \(statusText(word))")
        report.pace = PassportStage(.notAdvertised)
        return []
    }

    private mutating func noteCardAccess(_ detail: String) -> [PACEOffer] {
        report.cardAccess = PassportStage(.failed, detail)
        report.pace = PassportStage(.notAdvertised)
        show(.access, "EF.CardAccess", .failed, "FAILED, \(detail)")
        return []
    }

    /// Selects the eMRTD application: in the channel after PACE, in plain before Basic Access Control.
    private func selectApplication(over transport: any NFCTagTransport) async throws {
        let aid = Data([0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01])
        let select = CommandAPDU(cla: 0, ins: 0xA4, p1: 0x04, p2: 0x0C, data: aid)
        let answer = try await Self.exchange(select, over: transport)
        switch answer.statusWord {
        case 0x9000: return
        case 0x6A82: throw NFCError.applicationNotFound(aid: aid)
        default: throw NFCError.unexpectedStatusWord(answer.sw1, answer.sw2)
        }
    }

    // MARK: PACE

    /// Tries the ways of PACE that the chip offers; nil when none opened it and Basic Access Control may.
    private mutating func openByPACE(_ offers: [PACEOffer]) async throws -> SecureMessagingTransport? {
        var refusals: [String] = []
        for offer in offers.prefix(Self.mostOffers) {
            do {
                return try await openByPACE(offer)
            } catch let error as PACEError {
                refusals.append(error.detail)
                show(.access, "PACE", .failed, "FAILED \(error.detail)")
                let hasZone = if case .mrz = request.access { true } else { false }
                let mayFallBack = hasZone && DeliberateMistake.made != .fallbackSkipped
                // A wrong password is wrong for every way; a counted one must not be tried again.
                if !mayFallBack, error.isAboutPassword || request.access.isCounted {
                    report.pace = PassportStage(.failed, error.detail)
                    throw error.code == .cryptography ? error : NFCError.paceFailed("\(offer.name): \(error.detail)")
                }
                try await link.startOver()
                if error.isAboutPassword { break }
            }
        }
        guard !refusals.isEmpty else { return nil }
        report.pace = PassportStage(.fallback, "offered and not used: \(refusals.joined(separator: "; "))")
        return nil
    }

    private mutating func openByPACE(_ offer: PACEOffer) async throws -> SecureMessagingTransport {
        var run = try PACE(offer, access: request.access)
        let outcome: PACE.Outcome
        do {
            outcome = try await perform(&run)
        } catch let error as PACEError where error.isAboutPassword && run.chipPadsItsKey && !request.access.isCounted {
            // 9303-11 9.4.3 wants DH keys without leading zeros; a chip that sends them may have its token over them.
            try await link.startOver()
            run = try PACE(offer, access: request.access, takesReceivedForm: true)
            outcome = try await perform(&run)
        }
        let environment = CardEnvironment.current
        environment.logKey("pace.ksEnc", outcome.encryptionKey)
        environment.logKey("pace.ksMac", outcome.authenticationKey)
        let channel = try Self.channel(offer.algorithm, outcome.encryptionKey, outcome.authenticationKey)
        pace = (offer, outcome)
        let remarks = run.remarks.isEmpty ? "" : "; " + run.remarks.joined(separator: "; ")
        report.pace = PassportStage(.succeeded, offer.name + remarks)
        show(.access, "PACE", .done, "keys agreed with the \(request.access.name)")
        return SecureMessagingTransport(over: link, isT0: link.isT0, channel)
    }

    private func perform(_ run: inout PACE) async throws -> PACE.Outcome {
        var action = try run.begin()
        while true {
            switch action {
            case .send(let command): action = try run.received(try await link.exchange(command))
            case .draw(let label, let count):
                action = try run.drew(try CardEnvironment.current.randomOctets(count, label: label))
            case .agreed(let outcome): return outcome
            }
        }
    }

    /// A channel after a key agreement: the counter begins at zero. Its keys are told to whoever keeps keys.
    static func channel(
        _ algorithm: KeyDerivation.Algorithm, _ encryptionKey: [UInt8], _ authenticationKey: [UInt8]
    ) throws -> SecureMessaging {
        let cipher: SecureMessagingCipher = algorithm == .tripleDES ? .tripleDES : .aes
        let counter = [UInt8](repeating: 0, count: cipher.blockLength)
        let environment = CardEnvironment.current
        environment.logKey("secureMessaging.enc", encryptionKey)
        environment.logKey("secureMessaging.mac", authenticationKey)
        environment.logKey("secureMessaging.ssc", counter)
        return try SecureMessaging(
            cipher: cipher, encryptionKey: encryptionKey, authenticationKey: authenticationKey, sendSequenceCounter: counter)
    }

    /// Other ways of PACE than these are not tried.
    private static var mostOffers: Int { 4 }

    // MARK: Basic Access Control

    private mutating func openByBasicAccess(_ key: String) async throws -> SecureMessagingTransport {
        let environment = CardEnvironment.current
        var control = try BasicAccessControl(mrzKey: key)
        var action = try control.begin()
        do {
            while true {
                switch action {
                case .send(let command):
                    action = try control.received(try await link.exchange(command))
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
                    let isFallback = report.pace.status == .fallback
                    report.bac = PassportStage(.succeeded)
                    show(
                        .access, "BAC", .done,
                        "keys agreed" + (isFallback ? "; PACE was offered and not used" : ", secure messaging with 3DES"))
                    return SecureMessagingTransport(over: link, isT0: link.isT0, channel)
                }
            }
        } catch let error as BasicAccessControlError {
            report.bac = PassportStage(.failed, error.detail)
            show(.access, "BAC", .failed, "FAILED, \(error.detail)")
            throw error
        }
    }
}
