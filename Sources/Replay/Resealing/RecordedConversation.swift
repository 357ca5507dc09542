// SPDX-License-Identifier: MIT

import CardCrypto
import GrammarRuntime
import Octets
import TraceDecoding
import TraceFile

/// What was said inside the channels of a recording, and which exchanges agree on keys.
struct RecordedConversation: Sendable {
    /// An exchange whose answer is made anew.
    enum Agreement: Sendable {
        /// GET CHALLENGE.
        case challenge
        case basicAccess(seed: [UInt8])
        case paceStart(PACEPlan)
        /// One of the four GENERAL AUTHENTICATE.
        case paceStep
        /// The pair is kept for the next step.
        case chipStart(KeyAgreementKeyPair, cipher: UInt8)
        case chipStep
        case chipAtOnce(KeyAgreementKeyPair)
        case signature(ActiveAuthenticationKey)
        case desfireStart(key: [UInt8], isLRP: Bool, cardCapabilities: [UInt8])
        case desfireFinish
        case platformStart(enc: [UInt8], mac: [UInt8])
        case platformFinish
    }

    /// What one run of PACE needs, and what the recorded chip did in it that is its own choice.
    struct PACEPlan: Sendable {
        var identifier: [UInt8]
        var parameters: DomainParameters
        /// As MSE:Set AT names it.
        var password: UInt8
        var secret: [UInt8]
        var staticKey: KeyAgreementKeyPair?
        /// Names of certificate authorities, the newest last.
        var authorities: [[UInt8]] = []
        var hasLongNonce = false
        var padsKeys = false
    }

    /// How the answer to an exchange comes into a run.
    enum Answer: Sendable {
        /// Without a channel around it.
        case bare
        /// Under a channel: the data inside.
        case sealed(data: [UInt8], form: DESFireForm)
        /// A later part of the answer that began with another exchange.
        case part(of: Int, number: Int)
    }

    enum DESFireForm: Sendable { case none, plain, maced, enciphered }

    struct Exchange: Sendable {
        var command: CommandForm
        var answer = Answer.bare
        /// The whole answer's data and status word.
        var data: [UInt8] = []
        var status: [UInt8] = []
        /// The status word of this exchange's own part.
        var ownStatus: [UInt8] = []
        /// Octets of data in each of its parts.
        var parts: [Int] = []
        var agreement: Agreement?
        /// What was wrong with the answer's protection.
        var fault: ProtectionFault?
    }

    /// By step of the transport; nil for what is no exchange of APDUs.
    private(set) var exchanges: [Exchange?]
    /// What cannot be made anew and is answered as recorded, in words.
    private(set) var notes: [String] = []
    /// What is missing, the first.
    private(set) var blocked: Blocked?

    private let knowledge: CardKnowledge
    private let index: GrammarIndex
    /// Exchanges whose answer is not whole.
    private var open: [Int] = []
    private var openData: [UInt8] = []
    /// The exchange that began an authentication of DESFire, with the length of its challenge.
    private var begun: (step: Int, challenge: Int)?
    private var offered: Int?
    private var chipPair: (pair: KeyAgreementKeyPair, cipher: UInt8)?
    /// Where the PACE under way began.
    private var paceBegan: Int?

    init(_ steps: [RecordedSession.Step], knowledge: CardKnowledge, index: GrammarIndex = .standard) {
        self.knowledge = knowledge
        self.index = index
        exchanges = [Exchange?](repeating: nil, count: steps.count)
        var reading = CardReading(index, KeyTable(knowledge.secrets, index), triesNearMisses: false)
        for (number, step) in steps.enumerated() {
            switch step {
            case .apdu(let packet, let command, let answer): read(number, packet, command, answer, &reading)
            case .reset: _ = reading.reset("reset")
            case .removal: _ = reading.reset("removal")
            default: break
            }
        }
    }

    private mutating func read(
        _ step: Int, _ packet: UInt64, _ command: RecordedSession.Octets, _ answer: RecordedSession.Answer,
        _ reading: inout CardReading
    ) {
        let outcome = reading.push(request: command.octets, entry: index.command, packet: packet).outcome
        var exchange = Exchange(command: CommandForm(reading.decoder, outcome, frame: command.octets, index: index))
        require(exchange.command, reading.decoder, outcome, packet)
        guard case .response(let response) = answer, response.octets.count >= 2 else {
            exchanges[step] = exchange
            reading.decoder.state.pending = nil
            return
        }
        exchange.status = Array(response.octets.suffix(2))
        exchange.ownStatus = exchange.status
        exchange.data = Array(response.octets.dropLast(2))
        exchanges[step] = exchange
        let answered = reading.push(response: response.octets, entry: index.response, packet: packet).outcome
        let plain = answered.buffers.dropFirst().last { reading.decoder.buffers[$0].origin == .plain }
            .map { reading.decoder.octets(ofBuffer: $0) }
        if open.isEmpty || isContinuation(exchange.command) {
            open.append(step)
            openData += exchange.data
        } else {
            (open, openData) = ([step], exchange.data)
        }
        let isPart =
            plain == nil
            && reading.decoder.state.gathers.indices.contains { place in
                !index.program.gathers[place].ofRequest && reading.decoder.state.gathers[place].pieces > 0
            }
        if isPart { return }
        finish(plain, exchange.status, reading.decoder, answered)
        let isClosed = exchange.command.isProtected && !exchange.command.isOpened && exchange.command.failure == nil
        let isSilent = reading.decoder.annotations[answered.annotations].contains { $0.code == .sealed }
        if exchange.command.isOpened && isSilent || isClosed && exchange.status == [0x90, 0x00] && !exchange.data.isEmpty {
            block(packet)
        }
        (open, openData) = ([], [])
    }

    /// Whether a command asks for more of the answer before it.
    private func isContinuation(_ command: CommandForm) -> Bool {
        guard command.plain.count >= 2 else { return false }
        return command.plain[1] == 0xC0 || (command.plain[0] == 0x90 && command.plain[1] == 0xAF)
    }

    private mutating func finish(_ plain: [UInt8]?, _ status: [UInt8], _ decoder: Decoder, _ outcome: Decoder.Outcome) {
        guard let first = open.first, var exchange = exchanges[first] else { return }
        exchange.data = openData
        exchange.status = status
        exchange.parts = open.map { exchanges[$0]?.data.count ?? 0 }
        for (number, step) in open.enumerated().dropFirst() { exchanges[step]?.answer = .part(of: first, number: number) }
        exchange.fault = ProtectionFault(
            decoder, outcome, index, data: openData, status: status, isInside: exchange.command.isOpened, plain: plain)
        if let plain, exchange.command.isOpened || exchange.command.plain.first == 0x90 {
            if status[0] == 0x91 {
                let data = Array(plain.dropFirst())
                exchange.answer = .sealed(data: data, form: form(data, in: openData, decoder))
            } else {
                exchange.answer = .sealed(data: Array(plain.dropLast(2)), form: .none)
            }
        } else if exchange.fault?.padded != nil, exchange.command.isOpened {
            exchange.answer = .sealed(data: [], form: .none)
        }
        exchange.agreement = agreement(exchange, first, decoder)
        exchanges[first] = exchange
    }

    /// How an answer of DESFire was protected, as its length beside the plain data's tells.
    private func form(_ data: [UInt8], in sent: [UInt8], _ decoder: Decoder) -> DESFireForm {
        let macLength = decoder.hasLayer("D40") ? 4 : 8
        if sent == data { return .plain }
        return sent.count == data.count + macLength && sent.starts(with: data) ? .maced : .enciphered
    }

    // MARK: - What is missing

    private mutating func require(_ command: CommandForm, _ decoder: Decoder, _ outcome: Decoder.Outcome, _ packet: UInt64) {
        if decoder.annotations[outcome.annotations].contains(where: { $0.code == .sealed }) { block(packet) }
    }

    private mutating func block(_ packet: UInt64) {
        guard blocked == nil else { return }
        blocked = Blocked(
            reason: .key("session keys"), text: "the keys of the session that exchange \(packet) belongs to are not here")
    }

    private mutating func block(_ name: String, _ text: String) {
        guard blocked == nil else { return }
        blocked = Blocked(reason: .key(name), text: text)
    }

    // MARK: - Agreements

    private mutating func agreement(_ exchange: Exchange, _ step: Int, _ decoder: Decoder) -> Agreement? {
        let data: [UInt8]
        if case .sealed(let inside, _) = exchange.answer { data = inside } else { data = exchange.data }
        let isOK = exchange.status == [0x90, 0x00] || exchange.status[0] == 0x91 && [0x00, 0xAF].contains(exchange.status[1])
        let command = exchange.command
        switch command.name {
        case "iso7816.GET_CHALLENGE": return isOK && data.count == 8 ? .challenge : nil
        case "bac.BAC":
            guard isOK else { return nil }
            guard let seed = decoder.secret("seed", of: "bac") else {
                block("mrz", "the key of the machine-readable zone is not here: Basic Access Control cannot be run afresh")
                return nil
            }
            return .basicAccess(seed: seed)
        case "pace.PACE_SELECT": return isOK || exchange.status[0] == 0x63 ? paceStart(command, step) : nil
        case "pace.PACE_NONCE", "pace.PACE_MAP", "pace.PACE_AGREE", "pace.PACE_TOKEN":
            return isOK ? paceStep(data) : nil
        case "chipAuthentication.CA_SELECT", "chipAuthentication.CA_SET_KAT": return isOK ? chipStart(command) : nil
        case "chipAuthentication.CA_AGREE": return isOK && chipPair != nil ? .chipStep : nil
        case "activeAuthentication.AA": return isOK ? signature(data, command) : nil
        case "desfire.AUTHENTICATE_PART_2":
            guard isOK, let begun else { return nil }
            self.begun = nil
            return desfire(begun, decoder)
        case "globalPlatform.GP_INITIALIZE_UPDATE":
            guard isOK else { return nil }
            offered = step
            return nil
        case "globalPlatform.GP_EXTERNAL_AUTHENTICATE":
            guard isOK, let offered else { return nil }
            return platform(offered)
        default:
            if command.name.hasPrefix("desfire.AUTHENTICATE_"), exchange.status == [0x91, 0xAF] { begun = (step, data.count) }
            return nil
        }
    }

    private mutating func paceStart(_ command: CommandForm, _ step: Int) -> Agreement? {
        paceBegan = nil
        let objects = (try? TLV.parse(command.data, TLVRules(allowsFiller: false))) ?? []
        func value(_ tag: UInt32) -> [UInt8]? { objects.first { $0.tag == tag }.map { Array($0.value) } }
        guard let identifier = value(0x80), let password = value(0x83)?.first else { return nil }
        guard let parameters = knowledge.paceParameters(identifier, number: value(0x84)?.last) else {
            block("domain parameters", "EF.CardAccess is not in the trace, so nobody knows the parameters that PACE was run with")
            return nil
        }
        guard let secret = knowledge.passwords[password] else {
            let name = CardKnowledge.passwordNames[password] ?? "password"
            block(name, "\(name) is not here: PACE cannot be run afresh")
            return nil
        }
        var plan = PACEPlan(identifier: identifier, parameters: parameters, password: password, secret: secret)
        if identifier.count == 10, identifier[8] == 6 {
            plan.staticKey = knowledge.mappingPair(parameters)
            if plan.staticKey == nil {
                block(
                    CardKnowledge.chipKey,
                    "the chip's key is not here: PACE with chip authentication mapping cannot be run afresh")
                return nil
            }
        }
        paceBegan = step
        return .paceStart(plan)
    }

    private mutating func paceStep(_ data: [UInt8]) -> Agreement? {
        guard let paceBegan, case .paceStart(var plan)? = exchanges[paceBegan]?.agreement else { return nil }
        guard let outer = try? TLV.first(in: data[...]), outer.tag == 0x7C, let objects = try? outer.children() else {
            return nil
        }
        for object in objects {
            switch object.tag {
            case 0x80: plan.hasLongNonce = object.value.count > 16
            case 0x82, 0x84: if object.value.first == 0 { plan.padsKeys = true }
            case 0x87: plan.authorities.append(Array(object.value))
            case 0x88: plan.authorities.insert(Array(object.value), at: 0)
            default: break
            }
        }
        exchanges[paceBegan]?.agreement = .paceStart(plan)
        return .paceStep
    }

    private mutating func chipStart(_ command: CommandForm) -> Agreement? {
        let objects = (try? TLV.parse(command.data, TLVRules(allowsFiller: false))) ?? []
        func value(_ tag: UInt32) -> [UInt8]? { objects.first { $0.tag == tag }.map { Array($0.value) } }
        chipPair = nil
        guard let pair = knowledge.chipPair(number: value(0x84)) else {
            block(CardKnowledge.chipKey, "the chip's key is not here: Chip Authentication cannot be run afresh")
            return nil
        }
        if command.name == "chipAuthentication.CA_SET_KAT" { return .chipAtOnce(pair) }
        guard let cipher = value(0x80)?.last else { return nil }
        chipPair = (pair, cipher)
        return .chipStart(pair, cipher: cipher)
    }

    private mutating func signature(_ data: [UInt8], _ command: CommandForm) -> Agreement? {
        let keys = knowledge.secrets.keys(named: CardKnowledge.signingKey).compactMap { try? SigningKey(der: $0.octets) }
        for key in keys {
            if let found = ActiveAuthenticationKey(key, signature: data, over: command.data) { return .signature(found) }
        }
        notes.append(
            "Active Authentication signs a fresh challenge, and the chip's key is not here: the recorded signature is given")
        return nil
    }

    private mutating func desfire(_ begun: (step: Int, challenge: Int), _ decoder: Decoder) -> Agreement? {
        guard let key = decoder.secret("key", of: "desfire") else {
            block("desfire.key", "the key of the authentication is not here: it cannot be run afresh")
            return nil
        }
        exchanges[begun.step]?.agreement = .desfireStart(
            key: key, isLRP: begun.challenge == 17,
            cardCapabilities: decoder.field("cardCapabilities", in: "desfire.FirstProof") ?? [])
        return .desfireFinish
    }

    private mutating func platform(_ offered: Int) -> Agreement? {
        guard let enc = knowledge.secrets.value(named: "globalPlatform.enc"),
            let mac = knowledge.secrets.value(named: "globalPlatform.mac")
        else {
            block(
                "globalPlatform.enc", "the static keys of the security domain are not here: its channel cannot be opened afresh")
            return nil
        }
        exchanges[offered]?.agreement = .platformStart(enc: enc, mac: mac)
        self.offered = nil
        return .platformFinish
    }
}
