// SPDX-License-Identifier: MIT

import Octets
import TagTransport

/// What a command is called and what it is about, on one line (ISO/IEC 7816-4, -8, -9).
enum CommandName {
    /// The instruction's name alone: `READ BINARY`.
    static func instruction(cla: UInt8, ins: UInt8) -> String {
        if cla == 0xFF { return readerInstructions[ins] ?? "reader command \(Hex.encode([ins]))" }
        if cla & 0x80 != 0, cla != 0x80 || interindustry[ins] == nil { return "command \(Hex.encode([cla, ins]))" }
        return interindustry[ins] ?? "command \(Hex.encode([cla, ins]))"
    }

    /// The name with what is known from the header and, in a plain command, from the data field.
    ///
    /// - Parameters:
    ///   - isProtected: the data field is secure messaging's, so only the header speaks.
    ///   - application: whose files the identifiers name.
    static func summary(_ command: CommandAPDU, isProtected: Bool, in application: Application = .unknown) -> String {
        let name = instruction(cla: command.cla, ins: command.ins)
        if command.cla == 0xFF || (command.cla & 0x80 != 0 && command.cla != 0x80) { return name }
        switch command.ins {
        case 0xA4: return isProtected ? name : "\(name) \(selected(command, in: application))"
        case 0xB0 where command.p1 & 0x80 == 0:
            let offset = Int(command.p1) << 8 | Int(command.p2)
            if isProtected { return "\(name) at \(offset)" }
            return "\(name) \(command.ne.map { "\(grouped($0)) " } ?? "")at \(offset)"
        case 0xB0:
            let length = isProtected ? "" : command.ne.map { "\(grouped($0)) " } ?? ""
            return "\(name) \(length)at \(command.p2) of SFI \(Hex.encode([command.p1 & 0x1F]))"
        case 0xB1:
            guard !isProtected, let offset = oddOffset(command) else { return name }
            return "\(name) at \(offset)"
        case 0xD6 where command.p1 & 0x80 == 0:
            let offset = Int(command.p1) << 8 | Int(command.p2)
            return isProtected ? "\(name) at \(offset)" : "\(name) \(grouped(command.data?.count ?? 0)) at \(offset)"
        case 0xB2: return "\(name) \(command.p1)"
        case 0x20 where command.data == nil: return "\(name), tries of \(Hex.encode([command.p2]))"
        case 0x20, 0x24, 0x2C: return "\(name) \(Hex.encode([command.p2]))"
        case 0xC0: return command.ne.map { "\(name) \(grouped($0))" } ?? name
        case 0xCA, 0xCB, 0xDA: return "\(name) \(Hex.encode([command.p1, command.p2]))"
        default: return name
        }
    }

    /// The offset in DO 54 of an odd READ BINARY (ISO/IEC 7816-4 11.3.3).
    static func oddOffset(_ command: CommandAPDU) -> Int? {
        guard let data = command.data, let object = try? TLV.first(in: Array(data)[...]), object.tag == 0x54, object.value.count <= 4
        else { return nil }
        return object.value.reduce(0) { $0 << 8 | Int($1) }
    }

    /// What a SELECT asks for: a name that people know, else the identifier.
    static func selected(_ command: CommandAPDU, in application: Application) -> String {
        let data = command.data.map { Array($0) } ?? []
        if command.p1 == 0x04 {
            return applications.first { $0.aid == data }?.name ?? (data.isEmpty ? "default application" : Hex.encode(data))
        }
        if data.isEmpty || data == [0x3F, 0x00] { return "MF" }
        guard data.count == 2 else { return Hex.encode(data) }
        return fileName(UInt16(data[0]) << 8 | UInt16(data[1]), in: application) ?? "file \(Hex.encode(data))"
    }

    /// The application that is selected, as far as it changes what a file identifier means.
    enum Application: Sendable, Equatable {
        /// None that was seen being selected: the master file's.
        case unknown
        /// The eMRTD application (ICAO 9303-10 3.4).
        case travelDocument
        case other

        /// The application after a SELECT that the card accepted.
        mutating func select(_ command: CommandAPDU) {
            let data = command.data.map { Array($0) } ?? []
            if command.p1 == 0x04 {
                self = data == travelDocumentName ? .travelDocument : .other
            } else if data.isEmpty || data == [0x3F, 0x00] {
                self = .unknown
            }
        }
    }

    /// The names of the files of an eMRTD (ICAO 9303-10 3.11) and of every card.
    static func fileName(_ identifier: UInt16, in application: Application) -> String? {
        switch (identifier, application) {
        case (0x3F00, _): "MF"
        case (0x2F00, .unknown), (0x2F00, .travelDocument): "EF.DIR"
        case (0x2F01, .unknown), (0x2F01, .travelDocument): "EF.ATR/INFO"
        case (0x011C, .unknown): "EF.CardAccess"
        case (0x011D, .travelDocument): "EF.SOD"
        case (0x011E, .travelDocument): "EF.COM"
        case (0x0101...0x0110, .travelDocument): "DG\(identifier & 0xFF)"
        default: nil
        }
    }

    private static let travelDocumentName: [UInt8] = [0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01]

    /// `40000` as `40,000`.
    static func grouped(_ number: Int) -> String {
        let digits = String(number)
        var text = ""
        for (index, digit) in digits.enumerated() {
            let left = digits.count - index
            if index > 0, left % 3 == 0, digits[digits.index(digits.startIndex, offsetBy: index - 1)] != "-" { text.append(",") }
            text.append(digit)
        }
        return text
    }

    private static let applications: [(aid: [UInt8], name: String)] = [
        (travelDocumentName, "eMRTD application"),
        ([0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01], "NDEF application"),
        ([0xA0, 0x00, 0x00, 0x03, 0x08], "PIV application"),
    ]

    private static let interindustry: [UInt8: String] = [
        0x04: "DEACTIVATE FILE", 0x0C: "ERASE RECORD", 0x0E: "ERASE BINARY", 0x0F: "ERASE BINARY",
        0x10: "PERFORM SCQL OPERATION", 0x20: "VERIFY", 0x21: "VERIFY", 0x22: "MANAGE SECURITY ENVIRONMENT",
        0x24: "CHANGE REFERENCE DATA", 0x25: "CHANGE REFERENCE DATA", 0x26: "DISABLE VERIFICATION", 0x28: "ENABLE VERIFICATION",
        0x2A: "PERFORM SECURITY OPERATION", 0x2C: "RESET RETRY COUNTER", 0x2D: "RESET RETRY COUNTER", 0x44: "ACTIVATE FILE",
        0x46: "GENERATE KEY PAIR", 0x70: "MANAGE CHANNEL", 0x82: "EXTERNAL AUTHENTICATE", 0x84: "GET CHALLENGE",
        0x86: "GENERAL AUTHENTICATE", 0x87: "GENERAL AUTHENTICATE", 0x88: "INTERNAL AUTHENTICATE", 0xA0: "SEARCH BINARY",
        0xA2: "SEARCH RECORD", 0xA4: "SELECT", 0xB0: "READ BINARY", 0xB1: "READ BINARY", 0xB2: "READ RECORD", 0xB3: "READ RECORD",
        0xC0: "GET RESPONSE", 0xC2: "ENVELOPE", 0xC3: "ENVELOPE", 0xCA: "GET DATA", 0xCB: "GET DATA", 0xD0: "WRITE BINARY",
        0xD1: "WRITE BINARY", 0xD2: "WRITE RECORD", 0xD6: "UPDATE BINARY", 0xD7: "UPDATE BINARY", 0xDA: "PUT DATA",
        0xDB: "PUT DATA", 0xDC: "UPDATE RECORD", 0xDD: "UPDATE RECORD", 0xE0: "CREATE FILE", 0xE2: "APPEND RECORD",
        0xE4: "DELETE FILE", 0xE6: "TERMINATE DF", 0xE8: "TERMINATE EF", 0xFE: "TERMINATE CARD USAGE",
    ]

    private static let readerInstructions: [UInt8: String] = [
        0x00: "reader: direct transmit", 0xCA: "reader: GET DATA", 0x82: "reader: LOAD KEYS", 0x86: "reader: GENERAL AUTHENTICATE",
        0x88: "reader: AUTHENTICATE", 0x20: "reader: VERIFY", 0xB0: "reader: READ BINARY", 0xD6: "reader: UPDATE BINARY",
        0xC2: "reader: transparent exchange", 0x50: "reader: transparent exchange",
    ]
}
