// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials
public import TagTransport

/// A DESFire card over a transport, with the secure channel that is open to it.
///
/// It is a value with commands that mutate it: the language keeps two commands from being under way at once, which no channel
/// survives. A channel ends with the first error, be it the card's or one that this library found in an answer. From then on every
/// command throws until the card is selected or authenticated anew: nothing is ever sent or taken unprotected in the place of
/// a protected command.
public struct DESFireCard: Sendable {
    /// Who is authenticated.
    public struct Session: Sendable, Equatable {
        public let keyNumber: UInt8
        public let method: DESFireAuthentication
        /// PDcap2 and PCDcap2, six octets each, after EV2First and LRPFirst.
        public let capabilities: Data
    }

    public let framing: DESFireFraming
    /// ``DESFireChaining/iso`` needs EV2 or newer.
    public let chaining: DESFireChaining
    /// The application that is selected, three octets in card order; zeros are the card itself; nil after ISO SELECT.
    public internal(set) var selectedApplication: Data?

    let link: DESFireLink
    var state = State.open
    /// What file settings were read in this selection and session.
    var knownSettings: [UInt8: DESFireFileSettings] = [:]

    enum State: Sendable {
        /// Nobody is authenticated.
        case open
        case secured(DESFireChannel, Session)
        /// A command is under way, or its answer never came.
        case interrupted(DESFireCommandCode)
        /// A channel ended; the text says how.
        case lost(String)
    }

    public init(
        transport: any NFCTagTransport, framing: DESFireFraming = .isoWrapped, chaining: DESFireChaining = .additionalFrames
    ) {
        self.framing = framing
        self.chaining = chaining
        link = DESFireLink(transport: transport, framing: framing)
        selectedApplication = Data([0, 0, 0])
    }

    /// Who is authenticated; nil when nobody is.
    public var session: Session? {
        if case .secured(_, let session) = state { return session }
        return nil
    }

    /// Sends a command that this library has no function for.
    ///
    /// - Parameters:
    ///   - mode: how data and answer are protected in an open channel.
    ///   - header: parameters that are never enciphered.
    /// - Returns: the data of the answer.
    public mutating func send(
        _ code: DESFireCommandCode, header: Data = Data(), data: Data = Data(), mode: DESFireCommunicationMode = .plain
    ) async throws -> Data {
        try await facing { card in
            Data(
                try await card.transmit(
                    DESFireRequest(
                        code: code, header: [UInt8](header), data: [UInt8](data), protection: .file(mode), answers: true)))
        }
    }

    // MARK: - One command

    /// Sends a request under the channel that is open and gives the data of its answer.
    @discardableResult
    mutating func transmit(_ request: DESFireRequest) async throws -> [UInt8] {
        switch state {
        case .lost, .interrupted: throw lostChannel
        case .open:
            guard request.protection != .secret else {
                throw NFCError.unsupportedOperation("\(request.code) needs an authentication")
            }
            let answer = try await link.exchange(
                request.code.rawValue, request.header + request.data, inOnePiece: isOnePiece(request))
            guard Self.isDone(answer.status, request) else { throw NFCError.desfire(answer.status) }
            guard request.answers || answer.data.isEmpty else { throw NFCError.invalidResponse(Data(answer.data)) }
            if let length = request.answerLength, length != answer.data.count {
                throw NFCError.invalidResponse(Data(answer.data))
            }
            return answer.data
        case .secured(var channel, let session):
            // Until the answer has been opened there is no telling where the card's chain and counter stand.
            state = .interrupted(request.code)
            let parameters = try channel.seal(request)
            let answer = try await link.exchange(request.code.rawValue, parameters, inOnePiece: isOnePiece(request))
            guard Self.isDone(answer.status, request) else {
                let error = NFCError.desfire(answer.status)
                lose("the channel ended at \(request.code): \(error)")
                throw error
            }
            if request.endsSession {
                guard answer.data.isEmpty else {
                    throw DESFireChannelError(.surplusData, "\(answer.data.count) bytes in an empty answer")
                }
                state = .open
                return []
            }
            do {
                let data = try channel.open(request, answer.data, status: answer.status)
                state = .secured(channel, session)
                return data
            } catch {
                lose("the channel ended at \(request.code): \(error)")
                throw error
            }
        }
    }

    /// Read_Sig of NTAG 424 DNA ends with 90, everything else with 00 (NT4H2421Gx 10.8.2).
    private static func isDone(_ status: UInt8, _ request: DESFireRequest) -> Bool {
        status == 0x00 || (status == 0x90 && request.code == .readSignature)
    }

    private func isOnePiece(_ request: DESFireRequest) -> Bool { chaining == .iso }

    /// What every command throws while there is no telling what the card thinks.
    var lostChannel: NFCError {
        switch state {
        case .lost(let reason): .secureMessagingError(reason)
        case .interrupted(let code): .secureMessagingError("the channel was interrupted in \(code)")
        case .open, .secured: .secureMessagingError("")
        }
    }

    mutating func lose(_ reason: String) { state = .lost(reason) }

    /// Throws what the facade promises.
    @discardableResult
    mutating func facing<Result>(_ work: (inout DESFireCard) async throws -> Result) async throws -> Result {
        do {
            return try await work(&self)
        } catch {
            throw NFCError.facing(error)
        }
    }
}

extension DESFireCard {
    // MARK: - Authentication

    /// Authenticates with a key of the application or card that is selected.
    ///
    /// - Parameters:
    ///   - keyNumber: 0...13.
    ///   - method: nil takes the EV1 channel that fits the key's cipher.
    /// - Throws: ``NFCError/authenticationFailed`` when the card refused or did not prove that it knows the key;
    ///   ``NFCError/desfireError(_:)`` for other refusals.
    public mutating func authenticate(
        keyNumber: UInt8, key: DESFireKey, method: DESFireAuthentication? = nil
    ) async throws {
        try await facing { card in
            try await card.authenticateUnmapped(keyNumber, key, method ?? DESFireAuthentication(for: key.cipher))
        }
    }

    private mutating func authenticateUnmapped(
        _ keyNumber: UInt8, _ key: DESFireKey, _ method: DESFireAuthentication
    ) async throws {
        let needsAES = method == .aes || method.isEV2
        guard needsAES == (key.cipher == .aes), method != .legacy || key.cipher != .threeKeyTripleDES else {
            throw NFCError.unsupportedOperation("\(method.rawValue) does not go with a \(key.cipher.rawValue) key")
        }
        var continued: EV2Channel?
        if method == .ev2NonFirst || method == .lrpNonFirst {
            guard case .secured(.ev2(let channel), _) = state else {
                throw NFCError.unsupportedOperation("\(method.rawValue) goes on with an EV2 session, and there is none")
            }
            continued = channel
        }
        let before = capabilities
        state = .open
        knownSettings = [:]
        let rndA = try CardEnvironment.current.randomOctets(
            DESFireHandshake.randomLength(method, key), label: "desfire.rndA")
        var handshake = DESFireHandshake(method: method, key: key, rndA: rndA, continued: continued)
        let challenge = try await firstStep(method, keyNumber)
        do {
            let response = try handshake.respond(to: challenge)
            let proof = try await link.exchange(DESFireLink.more, response, inOnePiece: true, gathers: false)
            guard proof.status == 0 else { throw Self.refusal(proof.status) }
            let channel = try handshake.finish(proof.data)
            CardEnvironment.current.logKey("desfire.key", key.octets)
            for (name, octets) in handshake.sessionKeys { CardEnvironment.current.logKey(name, octets) }
            let capabilities = handshake.capabilities.isEmpty ? before : Data(handshake.capabilities)
            state = .secured(channel, Session(keyNumber: keyNumber, method: method, capabilities: capabilities))
        } catch let error as DESFireChannelError {
            throw error.code == .proofWrong ? NFCError.authenticationFailed : error
        }
    }

    private var capabilities: Data { session?.capabilities ?? Data() }

    /// Asks for the challenge; a card that puts authentications off is asked again for a while.
    private func firstStep(_ method: DESFireAuthentication, _ keyNumber: UInt8) async throws -> [UInt8] {
        var parameters = [keyNumber]
        // The reader's capabilities: none for AES; LRP is asked for by the first of six octets (NT4H2421Gx 10.4.1, 10.4.3).
        if method == .ev2First { parameters += [0x00] }
        if method == .lrpFirst { parameters += [0x06, 0x02, 0, 0, 0, 0, 0] }
        for attempt in 0... {
            let answer = try await link.exchange(method.code.rawValue, parameters, inOnePiece: true, gathers: false)
            if answer.status == DESFireStatus.authenticationDelay.rawValue, attempt < Self.mostDelays {
                try await Task.sleep(for: .milliseconds(50))
                continue
            }
            guard answer.status == DESFireLink.more else { throw Self.refusal(answer.status) }
            return answer.data
        }
        return []
    }

    private static func refusal(_ status: UInt8) -> NFCError {
        status == DESFireStatus.authenticationError.rawValue ? .authenticationFailed : .desfire(status)
    }

    /// Ten seconds of waiting.
    private static let mostDelays = 200
}
