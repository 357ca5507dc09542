// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets
import TraceDecoding
import VirtualCards

/// The recorded card in a run: the state of its channels and key agreements, with keys that this run agreed on.
///
/// The grammars' decoder hears the run as it would hear a recording: its layers open the commands and keep counters and chains.
struct LiveCard: Sendable {
    private(set) var decoder: Decoder
    /// The command that was opened last.
    private(set) var command: CommandForm?

    private let index: GrammarIndex
    private var random: CardRandom
    private var challenge: [UInt8] = []
    private var pace: PACEAgreement?
    private var chip: RecordedConversation.Agreement?
    private var desfire: DESFireAgreement?
    private var platform: PlatformAgreement?
    /// Whole answers that leave in parts, by the step that began them.
    private var whole: [Int: (octets: [UInt8], lengths: [Int])] = [:]
    private var exchange = 0

    init(_ index: GrammarIndex, random: CardRandom) {
        self.index = index
        self.random = random
        decoder = Decoder(index.program)
        decoder.triesNearMisses = false
    }

    mutating func reset() {
        _ = decoder.push(event: "reset")
        command = nil
        challenge = []
        pace = nil
        chip = nil
        desfire = nil
        platform = nil
        whole = [:]
    }

    mutating func open(_ octets: [UInt8]) -> CommandForm {
        exchange += 1
        decoder.state.pending = nil
        let outcome = decoder.push(request: octets, entry: index.command, exchange: exchange)
        let form = CommandForm(decoder, outcome, frame: octets, index: index)
        command = form
        return form
    }

    /// The command will get no answer.
    mutating func drop() { decoder.state.pending = nil }

    /// An answer goes out.
    mutating func hear(_ octets: [UInt8]) {
        _ = decoder.push(response: octets, entry: index.response, exchange: exchange)
    }

    // MARK: - Answers

    /// The octets that stand for the recorded answer of `step`; nil when they are those recorded.
    mutating func answer(_ recorded: RecordedConversation.Exchange, step: Int, command octets: [UInt8]) -> [UInt8]? {
        var data = recorded.data
        var status = recorded.status
        var isSealed = false
        var form = RecordedConversation.DESFireForm.none
        switch recorded.answer {
        case .bare: if recorded.agreement == nil { return nil }
        case .sealed(let inside, let protection):
            (data, form, isSealed) = (inside, protection, true)
        case .part(let first, let number): return part(number, of: first, status: recorded.ownStatus)
        }
        if let agreement = recorded.agreement {
            do throws(AgreementRefusal) {
                data = try run(agreement, octets, recorded: data) ?? data
            } catch {
                (data, status) = ([], error.status)
            }
        }
        if isSealed, status != recorded.status, status[0] == 0x91 { isSealed = false }
        var sent = isSealed ? seal(data, status: status, form: form, recorded.fault) : data
        if let fault = recorded.fault, isSealed || recorded.agreement != nil { sent = fault.spoil(sent) }
        guard recorded.parts.count > 1, status == recorded.status else { return sent + status }
        whole[step] = (sent, recorded.parts)
        return part(0, of: step, status: recorded.ownStatus)
    }

    /// A part of an answer that was sealed as a whole, cut as it was recorded.
    private func part(_ number: Int, of step: Int, status: [UInt8]) -> [UInt8]? {
        guard let (octets, lengths) = whole[step], lengths.indices.contains(number) else { return nil }
        let start = min(octets.count, lengths[..<number].reduce(0, +))
        let end = number == lengths.count - 1 ? octets.count : min(octets.count, start + lengths[number])
        return octets[start..<end] + status
    }

    /// Protects an answer as the channel that opened the command does; without one it stays as it is.
    ///
    /// - Parameter fault: what was wrong inside the recorded one.
    mutating func seal(
        _ data: [UInt8], status: [UInt8], form: RecordedConversation.DESFireForm, _ fault: ProtectionFault? = nil
    ) -> [UInt8] {
        guard let command, command.isOpened || form != .none else { return data }
        if status[0] == 0x91 { return sealNative(data, status[1], form) }
        if decoder.hasLayer("SM"), let enc = decoder.octets("enc", of: "SM"), let mac = decoder.octets("mac", of: "SM"),
            let counter = decoder.octets("ssc", of: "SM"), command.plain.count > 1
        {
            let isOdd = fault?.objects.map { $0.contains(0x85) } ?? (command.plain[1] & 1 == 1)
            let sealed = PassportAgreement.seal(
                fault?.padded ?? data, status: fault?.status ?? status, isOdd: isOdd, encryption: enc, authentication: mac,
                counter: counter, isPadded: fault?.padded != nil)
            return sealed.map { Array($0.dropLast(2)) } ?? data
        }
        if decoder.hasLayer("SCP") {
            var sealer = decoder
            let sealed = sealer.seal(data + status, entry: index.response, isRequest: false, exchange: exchange)
            return sealed.map { Array($0.dropLast(2)) } ?? data
        }
        return data
    }

    private func sealNative(_ data: [UInt8], _ status: UInt8, _ form: RecordedConversation.DESFireForm) -> [UInt8] {
        let protection: DESFireSealing.Form
        switch form {
        case .none, .plain: protection = .plain
        case .maced: protection = .maced
        case .enciphered: protection = .enciphered
        }
        let channel: DESFireSealing.Channel
        if decoder.hasLayer("D40"), let key = decoder.octets("legacyKey", of: "D40") {
            channel = .d40(key: key)
        } else if decoder.hasLayer("EV1"), let key = decoder.octets("ev1Key", of: "EV1"),
            let vector = decoder.octets("vector", of: "EV1")
        {
            channel = .ev1(key: key, vector: vector)
        } else if decoder.hasLayer("EV2"), let encryption = decoder.octets("encKey", of: "EV2"),
            let authentication = decoder.octets("macKey", of: "EV2"), let transaction = decoder.octets("ti", of: "EV2"),
            let counter = Self.number(decoder.octets("ctr", of: "EV2"))
        {
            let blocks = decoder.octets("blocks", of: "EV2") ?? []
            channel =
                blocks.isEmpty
                ? .ev2(encryption: encryption, authentication: authentication, transaction: transaction, counter: counter)
                : .lrp(key: encryption, transaction: transaction, counter: counter, blocks: blocks)
        } else {
            return data
        }
        guard let command, command.plain.count >= 5, command.plain[0] == 0x90 else { return data }
        return DESFireSealing.seal(data, to: [command.plain[1]] + command.data, status: status, form: protection, in: channel)
            ?? data
    }

    private static func number(_ octets: [UInt8]?) -> UInt16? {
        guard let octets, octets.count == 2 else { return nil }
        return UInt16(octets[0]) << 8 | UInt16(octets[1])
    }

    // MARK: - Agreements

    /// The data of the answer to a command that is part of a key agreement; nil when it is the recorded one.
    private mutating func run(
        _ agreement: RecordedConversation.Agreement, _ octets: [UInt8], recorded: [UInt8]
    ) throws(AgreementRefusal) -> [UInt8]? {
        let data = command?.data ?? []
        switch agreement {
        case .challenge:
            challenge = random.octets(8)
            return challenge
        case .basicAccess(let seed):
            decoder.give("bac.seed", seed)
            defer { challenge = [] }
            let (now, chipKey) = (challenge, random.octets(16))
            return try PassportAgreement.basicAccess(data, seed: seed, challenge: now, chipKey: chipKey)
        case .paceStart(let plan):
            pace = try PACEAgreement(
                identifier: plan.identifier, parameters: plan.parameters, password: plan.password, secret: plan.secret,
                staticKey: plan.staticKey,
                authorities: plan.authorities, hasLongNonce: plan.hasLongNonce, padsKeys: plan.padsKeys)
            return nil
        case .paceStep:
            guard var run = pace else { return nil }
            pace = nil
            let (answer, keys) = try run.answer(data) { random.octets($0) }
            if let keys { give(keys, "pace") } else { pace = run }
            return answer
        case .chipStart:
            chip = agreement
            return nil
        case .chipStep:
            guard case .chipStart(let pair, let cipher)? = chip, let outer = try? TLV.first(in: data[...]),
                let key = TLV.find(0x80, in: outer.value)
            else { return nil }
            let keys = try PassportAgreement.chipAuthentication(with: Array(key.value), pair: pair, cipher: cipher)
            give(keys, "chipAuthentication")
            return nil
        case .chipAtOnce(let pair):
            guard let key = (try? TLV.parse(data))?.first(where: { $0.tag == 0x91 }) else { return nil }
            give(try PassportAgreement.chipAuthentication(with: Array(key.value), pair: pair, cipher: 1), "chipAuthentication")
            return nil
        case .signature(let key): return key.sign(data) { random.octets($0) }
        case .desfireStart(let key, let isLRP, let capabilities):
            decoder.give("desfire.key", key)
            let transaction = decoder.octets("ti", of: "EV2").map { identifier in
                DESFireAgreement.Transaction(identifier: identifier, counter: Self.number(decoder.octets("next", of: "EV2")) ?? 0)
            }
            let code = octets.count > 1 ? octets[1] : 0
            let begun = try DESFireAgreement(
                code: code, parameters: data, key: key, isLRP: isLRP, cardCapabilities: capabilities, transaction: transaction
            ) { random.octets($0) }
            desfire = begun
            return begun.challenge
        case .desfireFinish:
            guard let begun = desfire else { return nil }
            desfire = nil
            return try begun.finish(data) { random.octets($0) }
        case .platformStart(let enc, let mac):
            decoder.give("globalPlatform.enc", enc)
            decoder.give("globalPlatform.mac", mac)
            let channel = try PlatformAgreement(offer: recorded, enc: enc, mac: mac, hostChallenge: data) { random.octets($0) }
            platform = channel
            return channel.answer
        case .platformFinish:
            guard var channel = platform else { return nil }
            platform = nil
            try channel.authenticate(octets)
            return []
        }
    }

    private mutating func give(_ keys: PassportAgreement.Keys, _ grammar: String) {
        decoder.give("\(grammar).ksEnc", keys.encryption)
        decoder.give("\(grammar).ksMac", keys.authentication)
    }
}
