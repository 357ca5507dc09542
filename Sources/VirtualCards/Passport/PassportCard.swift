// SPDX-License-Identifier: MIT

import CardCrypto
import Glibc
import Octets

/// The chip of a travel document (ICAO 9303-10, 9303-11): PACE, Basic Access Control, secure messaging, Chip Authentication.
///
/// - Before access is granted it answers SELECT of the master file and of the application, GET CHALLENGE and EXTERNAL
///   AUTHENTICATE; what else the application knows is `6982`. The master file has EF.CardAccess when there is PACE, and nothing otherwise.
/// - PACE is done in the master file; the four GENERAL AUTHENTICATE follow each other, or it begins again. Wrong is `6300`, for a
///   PIN `63Cx` with the tries that are left.
/// - A challenge is good for one EXTERNAL AUTHENTICATE. A wrong one is `6300`.
/// - In a session a wrong or missing object of secure messaging is a bare `6988` or `6987`, and any command without secure
///   messaging is answered as one before access; both end the session. Every other refusal is a secured one.
/// - A read at or behind the end of a file is `6B00`. One that asks for more than is left gives what is left and `6282`; Le `00` gives what
///   there is and `9000`. When ``isStrict``, reading past the end is a bare `6B00` and ends the session, as some real chips do.
/// - An answer is never longer than the outer Le, nor holds more than ``longestRead`` octets of a file.
public struct PassportCard: CardMachine {
    /// With the card capabilities of ISO/IEC 7816-4 12.1.1.9; without them when EF.ATR/INFO has them.
    public var atr: [UInt8] {
        AnswerToReset.contactless(
            configuration.quirks.contains(.capabilitiesInFile) ? [0x80] : [0x80, 0x73, 0x94, 0x01, 0x40])
    }

    let files: PassportFiles
    let access: BasicAccessControl
    let longestRead: Int
    private(set) var configuration: PassportConfiguration
    /// Kept over resets.
    var pinTriesLeft = PassportConfiguration.pinTries
    var random: CardRandom
    var isInApplication = false
    var current: UInt16?
    var state = Access.none
    var chipAuthentication = CardChipAuthentication.State.none
    /// After a failed PACE, with the quirk.
    var isSulking = false
    /// Comp of the chip's key of PACE, by which Terminal Authentication names the chip; the MRZ does after Basic Access Control.
    var chipIdentity: [UInt8]?
    var terminalAuthentication: PassportTerminalAuthentication?

    /// What was proven so far. Both ways to a session end in the same `secured`, whose channel does not care how its keys were agreed.
    enum Access {
        case none
        /// RND.IC is out.
        case challenged([UInt8])
        case pace(CardPACE)
        case secured(SecureChannel)
    }

    /// A refusal; whether it comes without secure messaging, and then whether it ends the session.
    struct Refusal: Error {
        enum Kind {
            case secured
            case bare
            case endsSession
        }

        var status: StatusWord
        var kind = Kind.secured
    }

    var isStrict: Bool { configuration.quirks.contains(.strict) }

    init(
        files: PassportFiles, access: BasicAccessControl, random: CardRandom, longestRead: Int = BinaryAccess.longestAnswer,
        isStrict: Bool = false, configuration: PassportConfiguration = PassportConfiguration()
    ) {
        self.files = files
        self.access = access
        self.random = random
        self.longestRead = longestRead
        var configuration = configuration
        if isStrict { configuration.quirks.insert(.strict) }
        self.configuration = configuration
    }

    public mutating func powerOn() {
        isInApplication = false
        current = nil
        state = .none
        isSulking = false
        endSession()
    }

    /// Forgets what was proven, but not what certificates told of new authorities and of today.
    mutating func endSession() {
        if let terminalAuthentication { configuration.verifier = terminalAuthentication.verifier }
        terminalAuthentication = configuration.verifier.map { PassportTerminalAuthentication(verifier: $0) }
        chipAuthentication = .none
        chipIdentity = nil
    }

    public mutating func answer(_ octets: [UInt8]) -> [UInt8] {
        if configuration.delay > 0 { usleep(configuration.delay &* 1_000) }
        do throws(StatusWord) {
            let command = try CardCommand(parsing: octets)
            return (command.cla == 0x0C ? try secured(command) : try plain(command)).octets
        } catch {
            if case .secured = state { state = .none }
            if octets.first == 0x0C { endSession() }
            return error.octets
        }
    }

    private mutating func plain(_ command: CardCommand) throws(StatusWord) -> CardReply {
        if case .secured = state {
            state = .none
            endSession()
        }
        if isSulking, command.ins != 0xA4 { throw .secureMessagingObjectWrong }
        if command.ins == 0x86, command.cla & 0xEF == 0 { return try paceStep(command) }
        if case .pace = state { state = .none }
        try command.requirePlainClass()
        do {
            return try run(command, isSecured: false, room: command.isExtended ? BinaryAccess.longestAnswer : 256)
        } catch {
            throw error.status
        }
    }

    private mutating func secured(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard case .secured(let before) = state else { throw .secureMessagingObjectWrong }
        var channel = before
        // Whatever is thrown from here on has ended the session.
        state = .none
        let inner = try channel.open(command)
        let isOdd = command.ins & 1 == 1
        let limit = min(command.ne ?? 65_536, command.isExtended ? BinaryAccess.longestAnswer : 256)
        var reply: CardReply
        do {
            reply = try run(inner, isSecured: true, room: channel.room(in: limit, isOdd: isOdd))
        } catch {
            switch error.kind {
            case .endsSession: throw error.status
            case .bare:
                if configuration.quirks.contains(.losesSession) { throw error.status }
                state = .secured(before)
                return CardReply([], error.status)
            case .secured:
                if configuration.quirks.contains(.dropsChannel) { throw error.status }
                reply = CardReply([], error.status)
            }
        }
        reply = try channel.seal(reply, isOdd: isOdd)
        guard reply.data.count <= limit else { throw .wrongLength }
        state = .secured(channelAfterChipAuthentication() ?? channel)
        return reply
    }

    private mutating func run(_ command: CardCommand, isSecured: Bool, room: Int) throws(Refusal) -> CardReply {
        guard let observer = configuration.observer else { return try perform(command, isSecured: isSecured, room: room) }
        let octets = [isSecured ? 0x0C : 0x00, command.ins, command.p1, command.p2] + command.data
        do {
            let reply = try perform(command, isSecured: isSecured, room: room)
            observer(octets, reply.octets)
            return reply
        } catch {
            observer(octets, error.status.octets)
            throw error
        }
    }

    private mutating func perform(_ command: CardCommand, isSecured: Bool, room: Int) throws(Refusal) -> CardReply {
        do throws(StatusWord) {
            switch command.ins {
            case 0xA4: return try select(command, isSecured: isSecured)
            case 0x84: return try getChallenge(command, isSecured: isSecured)
            case 0x82 where isSecured: return try authenticateTerminal(command)
            case 0x82: return try externalAuthenticate(command)
            case 0x2A: return try verifyCertificate(command, isSecured: isSecured)
            case 0x22: return try manageSecurityEnvironment(command, isSecured: isSecured)
            case 0x86: return try chipAuthenticationStep(command, isSecured: isSecured)
            case 0x88: return try internalAuthenticate(command, isSecured: isSecured)
            case 0xB0, 0xB1: break
            default: throw .instructionNotSupported
            }
        } catch {
            throw Refusal(status: error)
        }
        return try readBinary(command, isSecured: isSecured, room: room)
    }
}
