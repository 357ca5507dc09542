// SPDX-License-Identifier: MIT

import GrammarLibrary
import TraceDecoding
import TraceFile
import VirtualCards

/// A document's chip as far as an opened trace shows it, with keys of its own: it can be opened afresh with the recorded password.
struct DocumentModel: Sendable {
    let copy: PassportCopy
    /// Commands in plain that the trace shows, with what each was answered; Le left out, class 0C under secure messaging.
    let known: Set<[UInt8]>

    /// Nil when no application of a travel document was opened, or no password that opens it is at hand.
    init?(_ trace: Trace, _ secrets: SecretStore, _ session: RecordedSession, _ grammars: GrammarLibrary?) {
        var copy = PassportCopy()
        for call in session.calls where call.row.flow == "passport" {
            if let key = call.arguments["mrzKey"]?.stringValue { copy.keyInformation = Array(key.utf8) }
            if let can = call.arguments["can"]?.stringValue { copy.can = Array(can.utf8) }
        }
        if let mrz = secrets.value(named: "mrz"), copy.keyInformation == nil { copy.keyInformation = mrz }
        if let can = secrets.value(named: "can"), copy.can == nil { copy.can = can }
        guard copy.keyInformation != nil || copy.can != nil else { return nil }
        var decoder = TraceDecoder(interfaces: trace.interfaces, secrets: secrets, showsSecrets: true, grammars: grammars)
        decoder.hidesPieces = false
        var known: Set<[UInt8]> = []
        var command: (packet: UInt64, octets: [UInt8], isProtected: Bool)?
        var isInApplication = false
        var hasOpened = false
        var mostRead = 0
        var refused: Int?
        for row in trace.rows {
            let decoded = decoder.push(row)
            guard let packet = row.packetID else { continue }
            if decoded.kind == .command {
                command = (packet, decoded.plain ?? row.body, decoded.isProtected)
            } else if decoded.kind == .response, let asked = command, asked.packet == packet, asked.octets.count >= 4 {
                let octets = asked.octets
                let status = decoded.isSuccess
                let isOpened = decoded.opening == .opened && decoded.plain != nil
                if isOpened { hasOpened = true }
                known.insert(Self.key(octets, isProtected: asked.isProtected))
                if octets[1] == 0xA4, status {
                    if octets[2] == 0x04 { isInApplication = true }
                    if octets[2] == 0x00, octets.count <= 5 || octets[5...].starts(with: [0x3F, 0x00]) {
                        isInApplication = false
                    }
                }
                if octets[1] == 0xA4, octets[2] == 0x00, !asked.isProtected, [[0x67, 0x00], [0x6A, 0x86]].contains(row.body) {
                    copy.quirks.insert("no-mf")
                }
                if octets[1] == 0xB0 {
                    if isOpened, let plain = decoded.plain { mostRead = max(mostRead, plain.count - 2) }
                    if asked.isProtected, row.body == [0x67, 0x00], let le = octets.last { refused = le == 0 ? 256 : Int(le) }
                    if asked.isProtected, row.body == [0x6B, 0x00] { copy.quirks.insert("strict") }
                }
                if octets[1] == 0x82, octets.last == 0, row.body == [0x6A, 0x88] { copy.quirks.insert("exact-le") }
                if let file = decoded.file, let identifier = Self.identifiers[file.name] {
                    if isInApplication { copy.files[identifier] = file.octets } else { copy.masterFile[identifier] = file.octets }
                }
            }
        }
        guard hasOpened, !copy.files.isEmpty else { return nil }
        if let refused, refused > mostRead, mostRead > 0 {
            copy.quirks.insert("refuse-le")
            copy.longestRead = mostRead
        }
        self.copy = copy
        self.known = known
    }

    /// A command without its Le, which the virtual chip leaves out too.
    static func key(_ octets: [UInt8], isProtected: Bool) -> [UInt8] {
        var key = [isProtected ? 0x0C : 0x00, octets[1], octets[2], octets[3]]
        if octets.count > 5 {
            let count = Int(octets[4])
            if count > 0, octets.count >= 5 + count { key += octets[5..<5 + count] }
        }
        return key
    }

    /// ICAO 9303-10 table 38 and 4.6: files by the names that the decoder gives them.
    private static let identifiers: [String: UInt16] = {
        var names: [String: UInt16] = ["EF.COM": 0x011E, "EF.SOD": 0x011D, "EF.CardAccess": 0x011C, "EF.CardSecurity": 0x011D]
        for number in 1...16 { names["DG\(number)"] = 0x0100 | UInt16(number) }
        return names
    }()
}
