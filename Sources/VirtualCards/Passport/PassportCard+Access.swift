// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The ways to a session: Basic Access Control and PACE.
extension PassportCard {
    mutating func getChallenge(_ command: CardCommand, isSecured: Bool) throws(StatusWord) -> CardReply {
        guard isInApplication else { throw .conditionsNotSatisfied }
        // A chip that has PACE alone.
        guard isSecured || configuration.allowsBasicAccess else { throw .referencedDataNotFound }
        guard command.parameters == 0 else { throw .wrongParameters }
        guard command.data.isEmpty, command.ne == 8 || command.wantsAll else { throw .wrongLength }
        let challenge = random.octets(8)
        if isSecured { terminalAuthentication?.challenge(challenge) } else { state = .challenged(challenge) }
        return CardReply(challenge)
    }

    mutating func externalAuthenticate(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.parameters == 0 else { throw .wrongParameters }
        guard case .challenged(let challenge) = state else { throw .conditionsNotSatisfied }
        state = .none
        if configuration.quirks.contains(.exactLe), command.ne != 40 { throw .referencedDataNotFound }
        guard command.data.count == 40, command.ne == 40 || command.wantsAll else { throw .wrongLength }
        let (answer, channel) = try access.authenticate(command.data, challenge: challenge) { random.octets(16) }
        state = .secured(channel)
        return CardReply(answer)
    }

    /// MSE:Set AT for PACE in the master file, for Chip Authentication in a session (ICAO 9303-11 4.4.4.1, 6.2.5).
    mutating func manageSecurityEnvironment(_ command: CardCommand, isSecured: Bool) throws(StatusWord) -> CardReply {
        guard let objects = try? TLV.parse(command.data, TLVRules(allowsFiller: false)) else { throw .wrongData }
        func value(_ tag: UInt32) -> [UInt8]? { objects.first { $0.tag == tag }.map { Array($0.value) } }
        switch (command.parameters, isSecured) {
        case (0xC1A4, false): return try beginPACE(value(0x80), password: value(0x83), parameters: value(0x84))
        case (0x41A6, true): return try chipAuthentication(publicKey: value(0x91), key: value(0x84))
        case (0x81B6, true): try terminal { state throws(StatusWord) in try state.setAuthority(command.data) }
        case (0x81A4, true): try terminal { state throws(StatusWord) in try state.setTerminal(command.data) }
        case (0x41A4, true): return try beginChipAuthentication(value(0x80), key: value(0x84))
        default: throw .wrongParameters
        }
        return CardReply()
    }

    private mutating func beginPACE(
        _ identifier: [UInt8]?, password: [UInt8]?, parameters: [UInt8]?
    ) throws(StatusWord) -> CardReply {
        let profiles = configuration.profiles.filter { $0.objectIdentifier == identifier }
        guard !profiles.isEmpty else { throw .wrongData }
        if parameters == nil, configuration.quirks.contains(.needs84) { throw .referencedDataNotFound }
        if parameters != nil, configuration.quirks.contains(.no84) { throw .wrongData }
        guard let profile = parameters.map({ wanted in profiles.first { [$0.parameterId] == wanted } }) ?? profiles.first,
            let password = password.flatMap({ $0.count == 1 ? PassportPassword(rawValue: $0[0]) : nil }),
            let secret = configuration.passwords[password]
        else { throw .referencedDataNotFound }
        do {
            state = .pace(
                try CardPACE(
                    profile, password, secret: secret, staticKey: configuration.mappingKeys[profile.parameterId],
                    authorityReferences: configuration.verifier?.trustPoints.map(\.reference) ?? [], quirks: configuration.quirks)
            )
        } catch {
            throw .conditionsNotSatisfied
        }
        let isFresh = password != .pin || pinTriesLeft == PassportConfiguration.pinTries
        return CardReply([], isFresh ? .success : .triesLeft(pinTriesLeft))
    }

    /// A GENERAL AUTHENTICATE of PACE: all but the last are marked as one of a chain (ICAO 9303-11 4.4.4).
    mutating func paceStep(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard case .pace(var run) = state else { throw .conditionsNotSatisfied }
        state = .none
        guard command.parameters == 0 else { throw .wrongParameters }
        guard (command.cla & 0x10 == 0) == run.isAtToken else { throw .lastOfChainExpected }
        guard run.password != .pin || pinTriesLeft > 0 else { throw .blocked }
        do {
            let (octets, outcome) = try run.answer(command.data) { random.octets($0) }
            guard let outcome else {
                state = .pace(run)
                return CardReply(TLV.encode(0x7C, octets))
            }
            // The PUK unblocks the PIN.
            if outcome.password == .pin || outcome.password == .puk { pinTriesLeft = PassportConfiguration.pinTries }
            state = .secured(outcome.channel)
            chipIdentity = outcome.chipIdentity
            isInApplication = false
            current = nil
            return CardReply(TLV.encode(0x7C, octets))
        } catch {
            if error == .authenticationFailed { isSulking = configuration.quirks.contains(.sulks) }
            guard error == .authenticationFailed, run.password == .pin, run.isAtToken else { throw error }
            pinTriesLeft = max(0, pinTriesLeft - 1)
            throw .triesLeft(pinTriesLeft)
        }
    }
}
