// SPDX-License-Identifier: MIT

import FoundationEssentials
import TagTransport

/// How native commands travel.
public enum DESFireFraming: String, Sendable, Hashable, Codable, CaseIterable {
    /// Inside ISO/IEC 7816-4 commands: `90 code 00 00 Lc parameters 00`, status `91xx`.
    case isoWrapped
    /// Bare: the code and its parameters; an answer begins with its status octet.
    case native
}

/// How what does not fit one frame travels.
public enum DESFireChaining: String, Sendable, Hashable, Codable, CaseIterable {
    /// In pieces of 59 octets, the next ones with the code `AF`.
    case additionalFrames
    /// In one command, which ISO/IEC 14443-4 or extended lengths cut, with the codes of EV2 for it.
    case iso
}

/// The exchange of whole commands over frames. It knows nothing of channels: no frame code, no status `AF` is ever protected.
struct DESFireLink: Sendable {
    let transport: any NFCTagTransport
    let framing: DESFireFraming
    /// Parameters in one frame.
    var longestFrame = 59

    /// The answer to a whole command.
    struct Answer: Sendable {
        var status: UInt8
        var data: [UInt8]
    }

    /// Sends a command, in as many frames as it takes, and joins the frames of its answer.
    ///
    /// - Parameters:
    ///   - inOnePiece: whether the parameters go out uncut, in an extended command when they are long.
    ///   - gathers: whether `AF` after the last piece is followed up; an authentication does not.
    func exchange(
        _ code: UInt8, _ parameters: [UInt8], inOnePiece: Bool = false, gathers: Bool = true
    ) async throws -> Answer {
        var rest = parameters[...]
        var answer: Answer
        var isFirst = true
        repeat {
            let piece = inOnePiece ? rest : rest.prefix(longestFrame)
            rest = rest.dropFirst(piece.count)
            answer = try await frame(isFirst ? code : Self.more, Array(piece), wantsLong: inOnePiece)
            isFirst = false
            if rest.isEmpty { break }
            // A card that stops early says why; one that answers with data was not asked.
            guard answer.status == Self.more else {
                guard answer.status != 0 else { throw NFCError.invalidResponse(Data(answer.data)) }
                return answer
            }
            guard answer.data.isEmpty else { throw NFCError.invalidResponse(Data(answer.data)) }
        } while true
        guard gathers else { return answer }
        var empty = 0
        while answer.status == Self.more {
            let next = try await frame(Self.more, [], wantsLong: inOnePiece)
            empty = next.data.isEmpty ? empty + 1 : 0
            guard empty <= 2, answer.data.count <= Self.longestAnswer else { throw NFCError.invalidResponse(Data()) }
            answer.data += next.data
            answer.status = next.status
        }
        return answer
    }

    private func frame(_ code: UInt8, _ parameters: [UInt8], wantsLong: Bool) async throws -> Answer {
        switch framing {
        case .native:
            let answer = [UInt8](try await transport.send(Data([code] + parameters)))
            guard let status = answer.first else { throw NFCError.invalidResponse(Data()) }
            return Answer(status: status, data: Array(answer.dropFirst()))
        case .isoWrapped:
            let command: CommandAPDU
            do {
                command = try CommandAPDU(
                    cla: 0x90, ins: code, p1: 0, p2: 0, data: Data(parameters),
                    ne: wantsLong && parameters.count > 255 ? 65_536 : 256)
            } catch {
                throw NFCError.unsupportedOperation(error.description)
            }
            let response = try await transport.sendAPDU(command)
            guard response.sw1 == 0x91 else { throw NFCError.unexpectedStatusWord(response.sw1, response.sw2) }
            return Answer(status: response.sw2, data: [UInt8](response.data))
        }
    }

    static let more: UInt8 = 0xAF
    /// The largest file there can be, and what protects it.
    private static let longestAnswer = 1 << 24 + 64
}

extension NFCError {
    /// What a status octet other than 00 means.
    static func desfire(_ status: UInt8) -> NFCError {
        DESFireStatus(rawValue: status).map { .desfireError($0) } ?? .unexpectedStatusWord(0x91, status)
    }
}
