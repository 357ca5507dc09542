// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

extension SecureElementMachine {
    /// The logical channel of the command in hand.
    var channel: ElementLogicalChannel {
        get { (isContactless ? contactless : wired).channels[channelNumber] ?? ElementLogicalChannel() }
        set {
            if isContactless { contactless.channels[channelNumber] = newValue } else { wired.channels[channelNumber] = newValue }
        }
    }

    /// The channel number in a class octet: the low two bits, or those and 4 in the further form (ISO/IEC 7816-4 5.4.1).
    private static func channel(in cla: UInt8) -> Int {
        cla & 0xC0 == 0x40 || cla & 0xC0 == 0xC0 ? Int(cla & 0x0F) + 4 : Int(cla & 0x03)
    }

    mutating func route(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.cla != 0xFF, !command.isExtended else { throw .classNotSupported }
        channelNumber = Self.channel(in: command.cla)
        let isOpen = channelNumber < Self.channelCount && (isContactless ? contactless : wired).channels[channelNumber] != nil
        guard isOpen else {
            channelNumber = 0
            throw .channelNotSupported
        }
        if command.cla & 0xFC == 0 {
            if command.ins == 0xA4, command.p1 == 0x04 { return try select(command) }
            if command.ins == 0x70 { return try manageChannel(command) }
        }
        guard memory.cardState != ElementState.terminated else { throw StatusWord(rawValue: 0x6A81) }
        guard let aid = channel.selected else {
            if channel.isPaymentEnvironment { throw .instructionNotSupported }
            throw .conditionsNotSatisfied
        }
        guard let place = memory.index(of: aid) else { throw .conditionsNotSatisfied }
        if memory.applications[place].isSecurityDomain { return try runDomain(command) }
        if aid == ElementNames.contactlessRegistry { return try runContactlessRegistry(command) }
        return try runApplet(command, at: place)
    }

    // MARK: - Selection

    private mutating func select(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.p2 & 0xFC == 0 else { throw .wrongParameters }
        guard command.data.count <= 16 else { throw .wrongLength }
        if isContactless, command.data == ElementNames.paymentEnvironment { return try selectPaymentEnvironment() }
        let candidates = memory.applications.indices.filter { isSelectable($0, by: command.data) }
        var found = candidates.first
        if command.p2 & 0x03 == 0x02 {
            // Next occurrence: after the one that is selected.
            let current = channel.selected.flatMap { memory.index(of: $0) } ?? -1
            found = candidates.first { $0 > current }
        }
        guard let place = found else { throw .fileNotFound }
        let target = memory.applications[place]
        guard !target.isLocked else { throw StatusWord(rawValue: 0x6A81) }
        let isCardLocked = memory.cardState == ElementState.locked || memory.cardState == ElementState.terminated
        guard !isCardLocked || place == 0 else { throw StatusWord(rawValue: 0x6A81) }

        leave()
        channel = ElementLogicalChannel(selected: target.aid)
        var proprietary: [UInt8] = []
        if target.isSecurityDomain {
            proprietary =
                TLV.encode(0x73, recognition) + TLV.encode(0x9F6E, [0x54, 0x44, 0x00, 0x01]) + TLV.encode(0x9F65, [0xFF])
        } else if target.aid == ElementNames.contactlessRegistry {
            proprietary = TLV.encode(0x9F08, [0x01, 0x00]) + TLV.encode(0x80, [0x00, 0x01])
        } else {
            let context = context(target.aid)
            proprietary = memory.applications[place].applet?.select(context) ?? []
        }
        let control = TLV.encode(0x6F, TLV.encode(0x84, target.aid) + TLV.encode(0xA5, proprietary))
        return CardReply(control, isCardLocked ? StatusWord(rawValue: 0x6283) : .success)
    }

    private func isSelectable(_ place: Int, by name: [UInt8]) -> Bool {
        let application = memory.applications[place]
        if isContactless {
            return exposed.contains(application.aid) && application.contactless == 0x01 && !application.isSecurityDomain
                && !name.isEmpty && application.aid.starts(with: name)
        }
        guard application.state != ElementState.installed || application.isSecurityDomain && application.state & 0x07 == 0x07
        else {
            return false
        }
        return name.isEmpty ? place == 0 : application.aid.starts(with: name)
    }

    private mutating func selectPaymentEnvironment() throws(StatusWord) -> CardReply {
        let paying = memory.applications.filter {
            exposed.contains($0.aid) && $0.contactless == 0x01 && $0.module == PaymentApplet.moduleAID && !$0.isLocked
        }
        guard !paying.isEmpty else { throw .fileNotFound }
        leave()
        channel = ElementLogicalChannel(isPaymentEnvironment: true)
        let entries = paying.enumerated().flatMap { place, application in
            TLV.encode(0x61, TLV.encode(0x4F, application.aid) + TLV.encode(0x87, [UInt8(truncatingIfNeeded: place + 1)]))
        }
        let proprietary = TLV.encode(0xBF0C, entries)
        return CardReply(
            TLV.encode(0x6F, TLV.encode(0x84, ElementNames.paymentEnvironment) + TLV.encode(0xA5, proprietary)))
    }

    /// Ends what was selected on the channel.
    private mutating func leave() {
        endLoad()
        if let aid = channel.selected, let place = memory.index(of: aid) { memory.applications[place].applet?.deselect() }
    }

    /// MANAGE CHANNEL (GPC 11.7).
    private mutating func manageChannel(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.data.isEmpty else { throw .wrongLength }
        var interface = isContactless ? contactless : wired
        if command.p1 == 0x00, command.p2 == 0x00 {
            guard command.ne != nil else { throw .wrongLength }
            guard let free = interface.channels.firstIndex(where: { $0 == nil }) else { throw StatusWord(rawValue: 0x6A81) }
            interface.channels[free] = ElementLogicalChannel(selected: isContactless ? nil : ElementNames.issuerDomain)
            if isContactless { contactless = interface } else { wired = interface }
            return CardReply([UInt8(truncatingIfNeeded: free)])
        }
        guard command.p1 == 0x80, command.p2 > 0, command.p2 < Self.channelCount else { throw .wrongParameters }
        guard interface.channels[Int(command.p2)] != nil else { return CardReply([], StatusWord(rawValue: 0x6200)) }
        let current = channelNumber
        channelNumber = Int(command.p2)
        leave()
        channelNumber = current == channelNumber ? 0 : current
        if isContactless {
            contactless.channels[Int(command.p2)] = nil
        } else {
            wired.channels[Int(command.p2)] = nil
        }
        return CardReply()
    }

    // MARK: - Applets

    func context(_ aid: [UInt8]) -> AppletContext { AppletContext(aid: aid, isContactless: isContactless) }

    private mutating func runApplet(_ command: CardCommand, at place: Int) throws(StatusWord) -> CardReply {
        guard !memory.applications[place].isLocked else { throw StatusWord(rawValue: 0x6283) }
        guard !isContactless || memory.applications[place].contactless == 0x01 else { throw .conditionsNotSatisfied }
        guard var applet = memory.applications[place].applet else { throw .instructionNotSupported }
        var context = context(memory.applications[place].aid)
        // Each command is a transaction, but for what an applet does before it refuses.
        defer { memory.applications[place].applet = applet }
        let data = try applet.process(command, &context)
        events += context.events.map { SecureElementEvent(instanceAID: context.aid, data: $0) }
        return CardReply(data)
    }

    // MARK: - Security domains

    /// A command to the selected security domain, with its secure channel around it.
    private mutating func runDomain(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.cla & 0x70 == 0, command.cla & 0x08 == 0 else { throw .classNotSupported }
        // GPC 9.3.5: a load goes on without a command in between.
        if command.ins != 0xE8 { endLoad() }
        switch (command.cla & 0xFC, command.ins) {
        case (0x80, 0x50): return try initializeUpdate(command)
        case (0x84, 0x82): return try externalAuthenticate(command)
        default: break
        }
        guard var secure = channel.secure, secure.stage != .challenged else {
            channel.secure = nil
            guard command.cla & 0x04 == 0 else { throw .securityNotSatisfied }
            return CardReply(try inClear(command))
        }
        guard secure.stage == .open else {
            guard command.ins == 0xCA, command.cla & 0x04 == 0 else { throw .securityNotSatisfied }
            return CardReply(try inClear(command))
        }
        let clear: CardCommand
        do throws(StatusWord) {
            clear = try secure.open(command)
            channel.secure = secure
        } catch {
            channel.secure = secure
            throw error
        }
        return secure.close(try perform(clear))
    }

    /// What needs no secure channel: GET DATA (GPC table 11-2).
    private mutating func inClear(_ command: CardCommand) throws(StatusWord) -> [UInt8] {
        switch command.ins {
        case 0xCA: return try getData(command)
        case 0xD8, 0xE2, 0xE4, 0xE6, 0xE8, 0xF0, 0xF2: throw .securityNotSatisfied
        default: throw .instructionNotSupported
        }
    }

    private mutating func perform(_ command: CardCommand) throws(StatusWord) -> CardReply {
        if memory.cardState == ElementState.locked, ![0xCA, 0xF0].contains(command.ins) { throw .conditionsNotSatisfied }
        // A class of the interindustry form knows GET DATA alone.
        guard command.cla & 0x80 != 0 || command.ins == 0xCA else { throw .classNotSupported }
        switch command.ins {
        case 0xCA: return CardReply(try getData(command))
        case 0xD8: return CardReply(try putKey(command))
        case 0xE2: return CardReply(try storeData(command))
        case 0xE4: return CardReply(try delete(command))
        case 0xE6: return CardReply(try install(command))
        case 0xE8: return CardReply(try load(command))
        case 0xF0: return CardReply(try setStatus(command))
        case 0xF2: return try getStatus(command)
        default: throw .instructionNotSupported
        }
    }

    private mutating func initializeUpdate(_ command: CardCommand) throws(StatusWord) -> CardReply {
        channel.secure = nil
        channel.personalization = nil
        guard command.p2 == 0 else { throw .wrongParameters }
        guard let aid = channel.selected, let holder = memory.keyHolder(of: aid) else { throw .referencedDataNotFound }
        let sets = memory.applications[holder].keySets
        let wanted = command.p1 == 0 ? sets.indices.first : sets.firstIndex { $0.version == command.p1 }
        guard let index = wanted else { throw .referencedDataNotFound }
        let option = option(for: sets[index])
        let length = sets[index].isAES && option & 0x01 != 0 ? 16 : 8
        guard command.data.count == length else { throw .wrongLength }
        let limit: UInt32 = sets[index].isAES ? 0xFF_FFFF : 0xFFFF
        guard sets[index].counter < limit else { throw .conditionsNotSatisfied }
        // Amendment D 6.2.2.1: SCP03 counts here; SCP02 once the host has shown a right MAC.
        if sets[index].isAES { memory.applications[holder].keySets[index].counter += 1 }
        let keys = memory.applications[holder].keySets[index]
        let drawn = random.octets(keys.isAES ? length : 6)
        guard
            let secure = try? ElementChannel(
                keys: keys, option: option, holder: memory.applications[holder].aid, aid: aid, hostChallenge: command.data,
                random: drawn)
        else { throw .conditionsNotSatisfied }
        channel.secure = secure
        let counter = [UInt8(truncatingIfNeeded: keys.counter >> 8), UInt8(truncatingIfNeeded: keys.counter)]
        var data = diversification + [keys.version]
        if keys.isAES {
            data += [0x03, option] + secure.cardChallenge + secure.cardCryptogram
            if option & 0x10 != 0 { data += [UInt8(truncatingIfNeeded: keys.counter >> 16)] + counter }
        } else {
            data += [0x02] + counter + secure.cardChallenge + secure.cardCryptogram
        }
        return CardReply(data)
    }

    private mutating func externalAuthenticate(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard var secure = channel.secure else { throw .conditionsNotSatisfied }
        defer { channel.secure = secure }
        try secure.authenticate(command)
        if !secure.isAES, let place = memory.index(of: secure.keyHolder),
            let index = memory.applications[place].keySets.firstIndex(where: { $0.version == secure.keyVersion })
        {
            memory.applications[place].keySets[index].counter += 1
        }
        return CardReply()
    }

    func option(for keys: ElementKeySet) -> UInt8 {
        switch configuration.channel {
        case .scp02(let option): keys.isAES ? 0x70 : option
        case .scp03(let option): keys.isAES ? option : 0x55
        }
    }

    /// Ten octets that are this element's own.
    var diversification: [UInt8] {
        var source = CardRandom(seed: configuration.seed, use: "secure-element serial")
        return [0x54, 0x44] + source.octets(8)
    }
}
