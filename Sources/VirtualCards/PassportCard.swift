// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The chip of a travel document (ICAO 9303-10, 9303-11) with Basic Access Control and triple DES secure messaging.
///
/// - Before access is granted it answers SELECT of the master file and of the application, GET CHALLENGE and EXTERNAL
///   AUTHENTICATE; what else the application knows is `6982`. The master file is empty: EF.CardAccess is `6A82`.
/// - A challenge is good for one EXTERNAL AUTHENTICATE. A wrong one is `6300`.
/// - In a session a wrong or missing object of secure messaging is a bare `6988` or `6987`, and any command without secure
///   messaging is answered as one before access; both end the session. Every other refusal is a secured one.
/// - A read at or behind the end of a file is `6B00`. One that asks for more than is left gives what is left and `6282`; Le `00` gives what
///   there is and `9000`. When ``isStrict``, reading past the end is a bare `6B00` and ends the session, as some real chips do.
/// - An answer is never longer than the outer Le, nor holds more than ``longestRead`` octets of a file.
public struct PassportCard: CardMachine {
    public let atr = AnswerToReset.contactless([0x80, 0x73, 0x94, 0x01, 0x40])

    let files: PassportFiles
    let access: BasicAccessControl
    let longestRead: Int
    let isStrict: Bool
    private var random: CardRandom
    private var isInApplication = false
    private var current: UInt16?
    private var state = Access.none

    /// What was proven so far. Another way to a session, such as PACE, is another case beside `challenged`; it ends in the same
    /// `secured`, whose channel does not care how its keys were agreed.
    private enum Access {
        case none
        /// RND.IC is out.
        case challenged([UInt8])
        case secured(SecureChannel)
    }

    /// A refusal, and whether it comes without secure messaging and ends the session.
    private struct Refusal: Error {
        var status: StatusWord
        var endsSession = false
    }

    init(
        files: PassportFiles, access: BasicAccessControl, random: CardRandom, longestRead: Int = BinaryAccess.longestAnswer,
        isStrict: Bool = false
    ) {
        self.files = files
        self.access = access
        self.random = random
        self.longestRead = longestRead
        self.isStrict = isStrict
    }

    public mutating func powerOn() {
        isInApplication = false
        current = nil
        state = .none
    }

    public mutating func answer(_ octets: [UInt8]) -> [UInt8] {
        do throws(StatusWord) {
            let command = try CardCommand(parsing: octets)
            return (command.cla == 0x0C ? try secured(command) : try plain(command)).octets
        } catch {
            if case .secured = state { state = .none }
            return error.octets
        }
    }

    private mutating func plain(_ command: CardCommand) throws(StatusWord) -> CardReply {
        if case .secured = state { state = .none }
        try command.requirePlainClass()
        do {
            return try run(command, isSecured: false, room: command.isExtended ? BinaryAccess.longestAnswer : 256)
        } catch {
            throw error.status
        }
    }

    private mutating func secured(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard case .secured(var channel) = state else { throw .secureMessagingObjectWrong }
        // Whatever is thrown from here on has ended the session.
        state = .none
        let inner = try channel.open(command)
        let isOdd = command.ins & 1 == 1
        let limit = min(command.ne ?? 65_536, command.isExtended ? BinaryAccess.longestAnswer : 256)
        var reply: CardReply
        do {
            reply = try run(inner, isSecured: true, room: channel.room(in: limit, isOdd: isOdd))
        } catch {
            if error.endsSession { throw error.status }
            reply = CardReply([], error.status)
        }
        reply = try channel.seal(reply, isOdd: isOdd)
        guard reply.data.count <= limit else { throw .wrongLength }
        state = .secured(channel)
        return reply
    }

    private mutating func run(_ command: CardCommand, isSecured: Bool, room: Int) throws(Refusal) -> CardReply {
        do throws(StatusWord) {
            switch command.ins {
            case 0xA4: return try select(command, isSecured: isSecured)
            case 0x84: return try getChallenge(command, isSecured: isSecured)
            case 0x82: return try externalAuthenticate(command)
            case 0xB0, 0xB1: break
            default: throw .instructionNotSupported
            }
        } catch {
            throw Refusal(status: error)
        }
        return try readBinary(command, isSecured: isSecured, room: room)
    }
}

extension PassportCard {
    /// SELECT: the application by its whole name; a file of it by identifier; the master file, but not out of a session.
    private mutating func select(_ command: CardCommand, isSecured: Bool) throws(StatusWord) -> CardReply {
        guard command.p2 & 0xF3 == 0 else { throw .wrongParameters }
        switch (command.p1, command.data) {
        case (0x04, PassportFiles.application):
            isInApplication = true
            current = nil
            return CardReply(command.p2 == 0 && command.ne != nil ? TLV.encode(0x6F, TLV.encode(0x84, command.data)) : [])
        case (0x04, _): throw .fileNotFound
        case (0x00, []), (0x00, [0x3F, 0x00]):
            guard !isSecured else { throw .fileNotFound }
            isInApplication = false
            current = nil
            return CardReply()
        case (0x00, _), (0x02, _):
            guard command.data.count == 2 else { throw .lengthContradictsParameters }
            let identifier = UInt16(command.data[0]) << 8 | UInt16(command.data[1])
            let content = try file(identifier, isSecured: isSecured)
            current = identifier
            guard command.p2 & 0x0C != 0x0C, command.ne != nil else { return CardReply() }
            let parameters = ElementaryFile(identifier: identifier, content: .transparent(content)).controlParameters
            return CardReply(TLV.encode(command.p2 == 0 ? 0x6F : 0x62, parameters))
        default: throw .wrongParameters
        }
    }

    private func file(_ identifier: UInt16, isSecured: Bool) throws(StatusWord) -> [UInt8] {
        guard isInApplication else { throw .fileNotFound }
        guard isSecured else { throw .securityNotSatisfied }
        guard let content = files[identifier] else { throw .fileNotFound }
        return content
    }

    private mutating func getChallenge(_ command: CardCommand, isSecured: Bool) throws(StatusWord) -> CardReply {
        guard isInApplication else { throw .conditionsNotSatisfied }
        guard command.parameters == 0 else { throw .wrongParameters }
        guard command.data.isEmpty, command.ne == 8 || command.wantsAll else { throw .wrongLength }
        let challenge = random.octets(8)
        if !isSecured { state = .challenged(challenge) }
        return CardReply(challenge)
    }

    private mutating func externalAuthenticate(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.parameters == 0 else { throw .wrongParameters }
        guard case .challenged(let challenge) = state else { throw .conditionsNotSatisfied }
        state = .none
        guard command.data.count == 40, command.ne == 40 || command.wantsAll else { throw .wrongLength }
        let (answer, channel) = try access.authenticate(command.data, challenge: challenge) { random.octets(16) }
        state = .secured(channel)
        return CardReply(answer)
    }

    private mutating func readBinary(_ command: CardCommand, isSecured: Bool, room: Int) throws(Refusal) -> CardReply {
        do throws(StatusWord) {
            let access = try BinaryAccess(command)
            if !access.isOdd, !command.data.isEmpty { throw .wrongLength }
            let identifier: UInt16
            switch access.target {
            // Short identifiers of the application's files are the low octet of the long ones (9303-10 4.3).
            case .shortIdentifier(let short): identifier = 0x0100 | UInt16(short)
            case .identifier(let long): identifier = long
            case .current:
                guard isInApplication, isSecured else { throw isInApplication ? .securityNotSatisfied : .noCurrentFile }
                guard let current else { throw .noCurrentFile }
                identifier = current
            }
            let content = try file(identifier, isSecured: isSecured)
            current = identifier
            let reply = try access.read(content, command, limit: min(room, longestRead))
            if !isStrict || !reachesPastEnd(access, command, content.count) { return reply }
        } catch {
            throw Refusal(status: error, endsSession: isStrict && error == .offsetOutside)
        }
        throw Refusal(status: .offsetOutside, endsSession: true)
    }

    private func reachesPastEnd(_ access: BinaryAccess, _ command: CardCommand, _ count: Int) -> Bool {
        guard let ne = command.ne, !access.isOdd else { return false }
        return ne > count - access.offset
    }
}
