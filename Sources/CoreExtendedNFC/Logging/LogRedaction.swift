// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import TagTransport

/// Decides what of an exchange may stand in a log. What is secret never does, whatever is asked for.
struct LogRedaction: Sendable {
    private enum Content {
        case open
        /// Header and status word only.
        case protected
        case secret
    }

    /// An authentication has begun whose next frames (`AF`) are secret too.
    private var authenticationGoesOn = false

    init() {}

    /// The line of the command and the line of its answer.
    mutating func exchange(_ command: CommandAPDU, _ response: ResponseAPDU, payloads: Bool) -> (sent: String, received: String) {
        let content = content(of: command)
        authenticationGoesOn = content == .secret && response.hasMoreFrames
        let header = hexText([command.cla, command.ins, command.p1, command.p2])
        let le = command.ne.map { " Le \($0)" } ?? ""
        let word = hexText(response.statusWord)
        switch content {
        case .protected: return ("> \(header)", "< \(word)")
        case .secret:
            let sent = command.data.map { " <redacted \($0.count) bytes>" } ?? ""
            let received = response.data.isEmpty ? "" : "<redacted \(response.data.count) bytes> "
            return ("> \(header)\(sent)\(le)", "< \(received)\(word)")
        case .open where payloads:
            return (
                "> \(header)\(command.data.map { " \(hexText($0))" } ?? "")\(le)",
                "< \(response.data.isEmpty ? "" : "\(hexText(response.data)) ")\(word)"
            )
        case .open:
            return (
                "> \(header)\(command.data.map { " Lc \($0.count)" } ?? "")\(le)",
                "< \(response.data.isEmpty ? "" : "\(bytesText(response.data.count)) ")\(word)"
            )
        }
    }

    /// The line of a raw frame and the line of its answer.
    mutating func frame(_ sent: [UInt8], _ received: [UInt8], payloads: Bool) -> (sent: String, received: String) {
        let secret = isSecretFrame(sent)
        authenticationGoesOn = secret && received.first == 0xAF
        func text(_ octets: [UInt8]) -> String {
            secret ? "<redacted \(octets.count) bytes>" : payloads ? hexText(octets) : bytesText(octets.count)
        }
        return ("> \(text(sent))", "< \(text(received))")
    }

    private func content(of command: CommandAPDU) -> Content {
        switch command.cla {
        case 0xFF: return isSecretForReader(command) ? .secret : .open
        case 0x90:
            let secret = Self.desfireSecrets.contains(command.ins) || (command.ins == 0xAF && authenticationGoesOn)
            return secret ? .secret : .open
        case 0x40...0x7F where command.cla & 0x20 != 0: return .protected
        case 0x00...0x3F, 0x80...0x8F:
            if command.cla & 0x0C != 0 { return .protected }
            if Self.interindustrySecrets.contains(command.ins) { return .secret }
            // PUT KEY, STORE DATA and the purse commands of some cards.
            return command.cla & 0x80 != 0 && [0xD8, 0xE2, 0x32].contains(command.ins) ? .secret : .open
        default: return Self.interindustrySecrets.contains(command.ins) ? .secret : .open
        }
    }

    /// Commands to a reader of PC/SC part 3: key loading, and whatever secret command travels inside.
    private func isSecretForReader(_ command: CommandAPDU) -> Bool {
        let data = Array(command.data ?? Data())
        switch command.ins {
        case 0x82, 0x20: return true
        case 0xD6: return Self.keyPages.contains(command.p2)
        case 0x00:
            // PN53x: InCommunicateThru has the frame at once, InDataExchange after the target's number.
            guard data.count >= 2, data[0] == 0xD4 else { return !data.isEmpty }
            return isSecretFrame(Array(data.dropFirst(data[1] == 0x40 ? 3 : 2)))
        case 0xC2, 0x50:
            guard let objects = try? TLV.parse(data) else { return true }
            return objects.contains { ($0.tag == 0x93 || $0.tag == 0x95) && isSecretFrame(Array($0.value)) }
        default: return false
        }
    }

    private func isSecretFrame(_ frame: [UInt8]) -> Bool {
        guard let first = frame.first else { return false }
        switch first {
        // PWD_AUTH; authentication of Ultralight C and Ultralight AES.
        case 0x1B, 0x1A: return true
        case 0xAF: return authenticationGoesOn
        case 0xA2, 0xA0: return frame.count > 1 && Self.keyPages.contains(frame[1])
        default: break
        }
        // Password commands of ISO 15693 chips stand after the flags, the maker's code after them.
        if frame.count > 2, [0xB1, 0xB2, 0xB3, 0xB4].contains(frame[1]), [0x04, 0x02].contains(frame[2]) { return true }
        guard let command = try? CommandAPDU(bytes: frame), command.cla != 0xFF else { return false }
        return content(of: command) == .secret
    }

    /// VERIFY, CHANGE REFERENCE DATA, RESET RETRY COUNTER, EXTERNAL/MUTUAL, GET CHALLENGE, GENERAL and INTERNAL AUTHENTICATE.
    private static let interindustrySecrets: Set<UInt8> = [
        0x20, 0x21, 0x24, 0x25, 0x2C, 0x2D, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89,
    ]
    private static let desfireSecrets: Set<UInt8> = [0x0A, 0x1A, 0xAA, 0x71, 0x77, 0xC4, 0xC6, 0x5C]
    /// Passwords and keys of Ultralight EV1, NTAG21x, Ultralight C and Ultralight AES.
    private static let keyPages: Set<UInt8> = Set([0x12, 0x13, 0x27, 0x28, 0x85, 0x86, 0xE5, 0xE6]).union(0x2B...0x37)
}
