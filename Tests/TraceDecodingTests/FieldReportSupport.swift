// SPDX-License-Identifier: MIT

import Octets
import SessionSupport
import TraceDecoding
import TraceFile

/// Rows of public reports, fed to the decoder that `show` uses.
///
/// A line is a command or frame (`> 00A4`), an answer (`< 9000`), or a row of the reader's (`- removal`, `! timeout 8010000A`).
struct ReportedRows {
    private var decoder: TraceDecoder
    private let interface: Int
    private let dissector: String
    private var packet: UInt64 = 0
    private var command: UInt64 = 0
    private(set) var rows: [DecodedRow] = []

    /// - Parameter dissector: `iso7816` for APDUs; else what the frames are.
    init(_ dissector: String = "iso7816", secrets: SecretStore = SecretStore()) {
        decoder = TraceDecoder(
            interfaces: [TraceInterface(.apdu(0)), TraceInterface(.rf(0)), TraceInterface(.reader(0))], secrets: secrets)
        self.dissector = dissector
        interface = dissector == "iso7816" ? 0 : 1
    }

    @discardableResult
    mutating func push(_ lines: String...) -> [DecodedRow] {
        rows += lines.map { line in
            let text = String(line.dropFirst(2))
            switch line.first {
            case "-": return reader(.reader(MetaRow.Reader(name: text)))
            case "!":
                let words = text.split(separator: " ").map(String.init)
                return reader(
                    .error(
                        MetaRow.Failure(after: command, domain: "PCSC", case: words[0], code: words.count > 1 ? words[1] : nil)))
            default:
                let isSent = line.first == ">"
                if isSent {
                    packet += 1
                    command = packet
                }
                return row(hex(text), isSent ? .sent : .received)
            }
        }
        return rows
    }

    private mutating func row(_ octets: [UInt8], _ direction: RowDirection) -> DecodedRow {
        // Link type 264 puts version, event and length before a frame.
        let head: [UInt8] =
            dissector == "iso14443"
            ? [0, direction == .sent ? 0xFE : 0xFF, UInt8(octets.count >> 8), UInt8(octets.count & 0xFF)] : []
        return decoder.push(
            TraceRow(
                time: 0, interface: interface, direction: direction, packetID: packet, dissector: dissector, body: head + octets))
    }

    private mutating func reader(_ meta: MetaRow) -> DecodedRow {
        // A number of its own, as every row of a reader has.
        packet += 1
        return decoder.push(
            TraceRow(time: 0, interface: 2, direction: nil, packetID: packet, dissector: "json", body: meta.body))
    }
}

/// A frame with CRC_A behind it, low octet first (ISO/IEC 14443-3 annex B).
func withChecksum(_ frame: String) -> String {
    let octets = hex(frame)
    let sum = octets.reduce(UInt16(0x6363)) { sum, octet in
        (0..<8).reduce(sum ^ UInt16(octet)) { sum, _ in sum & 1 != 0 ? sum >> 1 ^ 0x8408 : sum >> 1 }
    }
    return Hex.encode(octets + [UInt8(truncatingIfNeeded: sum), UInt8(truncatingIfNeeded: sum >> 8)])
}

extension DecodedRow {
    /// The octets of the last leaf at `path`, in hexadecimal; a number as one. Nil when the row has none.
    func value(_ path: String) -> String? {
        guard let field = fields.last(where: { $0.path == path && $0.shape != .header }) else { return nil }
        switch field.value {
        case .octets(let octets): return Hex.encode(octets)
        case .number(let number): return String(number, radix: 16, uppercase: true)
        }
    }

    func text(_ path: String) -> String? { fields.last { $0.path == path && $0.shape != .header }?.text }

    /// What there is to say about the row beside what held: `error: text`.
    var remarks: [String] { annotations.filter { $0.code != "held" }.map { "\($0.severity.rawValue): \($0.text)" } }

    /// How many checks of the row held.
    var held: Int { annotations.filter { $0.code == "held" }.count }
}
