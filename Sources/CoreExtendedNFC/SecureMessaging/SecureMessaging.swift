// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import Octets
public import TagTransport

/// The terminal's side of secure messaging (ICAO 9303-11 9.8): a state machine that protects commands and opens answers.
///
/// It does no input or output. One command is under way at a time: ``protect(_:)``, then ``unprotect(_:)`` with its answer.
public struct SecureMessaging: Sendable {
    /// Where the channel stands.
    public enum State: Sendable, Equatable {
        /// A command can be protected. `bareAnswers` counts the answers without secure messaging since the last good one.
        case ready(bareAnswers: Int)
        /// A command is under way; `before` is the counter's value before it.
        case awaitingAnswer(before: [UInt8], bareAnswers: Int)
        /// Keys have to be agreed on again; the code says why.
        case ended(SecureMessagingError.Code)
    }

    public let cipher: SecureMessagingCipher
    public private(set) var state: State = .ready(bareAnswers: 0)
    /// The counter's present value, most significant octet first.
    public private(set) var sendSequenceCounter: [UInt8]
    private let encryptionKey: [UInt8]
    private let authenticationKey: [UInt8]

    /// A channel under fresh keys.
    ///
    /// - Parameters:
    ///   - encryptionKey: KSEnc, 16 octets for triple DES, 16, 24 or 32 for AES.
    ///   - authenticationKey: KSMAC, of the same length.
    ///   - sendSequenceCounter: its value before the first command: 8 octets for triple DES, 16 for AES.
    /// - Throws: ``SecureMessagingError`` with the code `keyLength`.
    public init(
        cipher: SecureMessagingCipher, encryptionKey: [UInt8], authenticationKey: [UInt8], sendSequenceCounter: [UInt8]
    ) throws(SecureMessagingError) {
        guard cipher.acceptsKey(ofLength: encryptionKey.count), authenticationKey.count == encryptionKey.count,
            sendSequenceCounter.count == cipher.blockLength
        else {
            throw SecureMessagingError(
                .keyLength,
                "keys of \(encryptionKey.count) and \(authenticationKey.count) bytes and a counter of \(sendSequenceCounter.count)"
                    + " do not fit \(cipher.displayName)"
            )
        }
        self.cipher = cipher
        self.encryptionKey = encryptionKey
        self.authenticationKey = authenticationKey
        self.sendSequenceCounter = sendSequenceCounter
    }

    /// Protects a command and moves the counter on (ICAO 9303-11 9.8.4).
    ///
    /// - Returns: the command as it travels; its Le is 256, or 65,536 when the lengths need the extended form.
    /// - Throws: ``SecureMessagingError``; the counter then stands where it stood.
    public mutating func protect(_ command: CommandAPDU) throws(SecureMessagingError) -> CommandAPDU {
        let bareAnswers: Int
        switch state {
        case .ready(let count): bareAnswers = count
        case .awaitingAnswer:
            throw SecureMessagingError(.answerOutstanding, "the answer to the command before has not come")
        case .ended: throw ended()
        }
        let header = [try Self.protectedClass(command.cla), command.ins, command.p1, command.p2]
        let before = sendSequenceCounter
        var counter = Self.successor(of: before)
        if DeliberateMistake.made == .counterOffByOne { counter = Self.successor(of: counter) }
        do {
            var objects: [UInt8] = []
            if let data = command.data {
                let cryptogram = try cipher.encrypt(Array(data), key: encryptionKey, counter: counter)
                // An odd INS carries data objects: DO 85, which has no padding indicator (ISO/IEC 7816-4 10.2.2).
                objects += command.ins & 1 == 1 ? TLV.encode(0x85, cryptogram) : TLV.encode(0x87, [0x01] + cryptogram)
            }
            if let ne = command.ne {
                let low = UInt8(truncatingIfNeeded: ne)
                let long = ne > 256 || command.form == .extended
                objects += TLV.encode(0x97, long ? [UInt8(truncatingIfNeeded: ne >> 8), low] : [low])
            }
            let mac = try cipher.authenticate(
                Padding.pad(header, to: cipher.blockLength) + objects, key: authenticationKey, counter: counter)
            objects += TLV.encode(0x8E, mac)
            let extended = objects.count > 255 || (command.ne ?? 0) > 256 || command.form == .extended
            let protected = try CommandAPDU(
                cla: header[0], ins: command.ins, p1: command.p1, p2: command.p2, data: Data(objects),
                ne: extended ? 65_536 : 256,
                form: extended ? .extended : .short)
            sendSequenceCounter = counter
            state = .awaitingAnswer(before: before, bareAnswers: bareAnswers)
            return protected
        } catch let error as APDUError {
            throw SecureMessagingError(.commandLength, error.description)
        } catch {
            throw end(SecureMessagingError(.keyLength, "\(error)"))
        }
    }

    /// Opens the answer to the command under way (ICAO 9303-11 9.8.5).
    ///
    /// - Parameter response: the whole answer, joined when it came by GET RESPONSE.
    /// - Returns: the plain data and the status word that stood under the MAC; the one outside is not looked at.
    /// - Throws: ``SecureMessagingError``. Only a first bare status word leaves the channel open.
    public mutating func unprotect(_ response: ResponseAPDU) throws(SecureMessagingError) -> ResponseAPDU {
        switch state {
        case .awaitingAnswer(let before, let bareAnswers):
            if response.data.isEmpty, !response.isSuccess {
                throw bare(response.statusWord, before: before, bareAnswers: bareAnswers)
            }
        case .ready: throw end(SecureMessagingError(.noCommand, "an answer to no command"))
        case .ended: throw ended()
        }
        let counter = Self.successor(of: sendSequenceCounter)
        let octets = Array(response.data)
        do {
            let answer = try ProtectedAnswer(octets)
            let mac = try cipher.authenticate(answer.authenticated, key: authenticationKey, counter: counter)
            guard equalInConstantTime(mac, answer.mac) || DeliberateMistake.made == .macNotChecked else {
                throw SecureMessagingError(.macWrong, "the answer's MAC does not fit its \(octets.count) bytes")
            }
            let status = try answer.requiredStatusWord()
            var plain: [UInt8] = []
            if let cryptogram = try answer.cryptogram(blockLength: cipher.blockLength) {
                let decrypted = try cipher.decrypt(cryptogram, key: encryptionKey, counter: counter)
                guard let unpadded = Padding.unpad(decrypted) else {
                    throw SecureMessagingError(.padding, "the \(decrypted.count) decrypted bytes do not end with 80 00 ..")
                }
                plain = unpadded
            }
            sendSequenceCounter = counter
            state = .ready(bareAnswers: 0)
            return ResponseAPDU(data: Data(plain), statusWord: status)
        } catch let error as SecureMessagingError {
            throw end(error)
        } catch {
            throw end(SecureMessagingError(.cryptogram, "\(error)"))
        }
    }

    /// Ends the channel because the answer to the command under way will not come.
    public mutating func abandon() { state = .ended(.ended) }

    private mutating func bare(_ word: UInt16, before: [UInt8], bareAnswers: Int) -> SecureMessagingError {
        // The card did not unwrap the command, so the counter goes back. The first time the card may have kept its channel;
        // 6987 and 6988 say that it has not, and so does a second such answer.
        sendSequenceCounter = before
        let error = SecureMessagingError(.bareStatusWord(word), "\(hexText(word)) without secure messaging")
        let over = word == 0x6987 || word == 0x6988 || bareAnswers > 0
        state = over ? .ended(error.code) : .ready(bareAnswers: bareAnswers + 1)
        return error
    }

    private mutating func end(_ error: SecureMessagingError) -> SecureMessagingError {
        state = .ended(error.code)
        return error
    }

    private func ended() -> SecureMessagingError {
        guard case .ended(let reason) = state, reason != .ended else {
            return SecureMessagingError(.ended, "secure messaging ended before")
        }
        return SecureMessagingError(.ended, "secure messaging ended before: \(reason)")
    }

    /// The class octet with its secure messaging bits set, header under the MAC (ISO/IEC 7816-4 5.4.1).
    private static func protectedClass(_ cla: UInt8) throws(SecureMessagingError) -> UInt8 {
        switch cla {
        case 0x00...0x1F where cla & 0x0C == 0: return cla | 0x0C
        case 0x40...0x5F: return cla | 0x20
        default: throw SecureMessagingError(.classOctet, "class \(hexText([cla])) cannot carry secure messaging")
        }
    }

    /// The counter plus one; after all ones comes zero.
    private static func successor(of counter: [UInt8]) -> [UInt8] {
        var next = counter
        for index in next.indices.reversed() {
            next[index] &+= 1
            if next[index] != 0 { break }
        }
        return next
    }
}

extension SecureMessaging: CustomStringConvertible, CustomReflectable {
    public var description: String { "secure messaging with \(cipher.displayName), SSC \(hexText(sendSequenceCounter))" }
    /// Keys stay out of every rendering.
    public var customMirror: Mirror { Mirror(self, children: ["cipher": cipher, "state": state]) }
}
