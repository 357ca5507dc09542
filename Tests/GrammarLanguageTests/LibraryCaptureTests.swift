// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage
import GrammarRuntime
import Octets
import TestSupport
import Testing

/// Frames that others captured with a Proxmark3, as the grammars of this package name them.
@Suite(.enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence)))
struct CapturedFrames {
    struct Row {
        var octets: [UInt8]
        var isRequest: Bool
        var exchange: String?
        var codes: [AnnotationCode]
        var texts: [String]
    }

    private static let traces = "RfidResearchGroup__proxmark3/traces/"
    private static let workshop = "sebastiaangroot__desfire-workshop/handouts/challenges/"

    /// Records of a trace: time and duration (4 and 2 octets), length with the direction in bit 15, the frame, its parity.
    private func frames(_ path: String) throws -> [(octets: [UInt8], isRequest: Bool)] {
        let octets = try [UInt8](Data(contentsOf: #require(SharedData.folder).appendingPathComponent("data/\(path)")))
        var place = 0
        var list: [(octets: [UInt8], isRequest: Bool)] = []
        while place + 8 <= octets.count {
            let word = Int(octets[place + 6]) | Int(octets[place + 7]) << 8
            let length = word & 0x7FFF
            place += 8
            guard place + length <= octets.count else { break }
            list.append((Array(octets[place..<place + length]), word & 0x8000 == 0))
            place += length + (length + 7) / 8
        }
        return list
    }

    private func rows(_ path: String) throws -> [Row] {
        var decoder = Decoder(Shipped.set.program)
        let command = try #require(Shipped.set.program.entry(named: "iso14443.Command"))
        let response = try #require(Shipped.set.program.entry(named: "iso14443.Response"))
        var rows: [Row] = []
        for (number, frame) in try frames(path).enumerated() {
            let count = frame.octets.count
            let head: [UInt8] = [0, frame.isRequest ? 0xFE : 0xFF, UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
            let outcome =
                frame.isRequest
                ? decoder.push(request: head + frame.octets, entry: command, exchange: number)
                : decoder.push(response: head + frame.octets, entry: response, exchange: number)
            #expect(GrammarLaws.breach(&decoder, outcome, head + frame.octets) == nil)
            rows.append(
                Row(
                    octets: frame.octets, isRequest: frame.isRequest,
                    exchange: outcome.exchange.flatMap { decoder.exchangeName($0)?.name },
                    codes: decoder.annotations[outcome.annotations].map(\.code),
                    texts: outcome.spans.compactMap { decoder.isComposite($0) ? nil : decoder.text(of: $0) }))
        }
        return rows
    }

    @Test(arguments: [
        traces + "hf_14a_mfu.trace", traces + "hf_14a_mfuc_defaultkey.trace", traces + "hf_14a_mful_aes_defaultkey.trace",
        traces + "hf_14a_reader_7b_rats.trace", traces + "hf_14b_reader.trace", workshop + "2-encrypted-comms/chal2.trace",
        workshop + "3-inner-sanctum/chal3-1.trace",
    ])
    func everyFrameHasANameAndEveryChecksumHolds(_ path: String) throws {
        let rows = try rows(path)
        #expect(!rows.isEmpty)
        for row in rows {
            #expect(row.exchange != nil, "\(Hex.encode(row.octets))")
            #expect(!row.codes.contains(.failed) && !row.codes.contains(.unknown), "\(Hex.encode(row.octets))")
        }
        // Frames of the activation of type A have none.
        #expect(rows.filter { $0.codes.contains(.held) }.count * 2 >= rows.count)
    }

    @Test func aTagThatSpeaksNoBlocksIsNeverReadAsAPDUs() throws {
        for name in ["hf_14a_mfu.trace", "hf_14a_mfuc_defaultkey.trace", "hf_14a_mful_aes_defaultkey.trace"] {
            let rows = try rows(Self.traces + name)
            #expect(rows.contains { $0.exchange == "OTHER" })
            #expect(rows.allSatisfy { !["BLOCK", "SELECT", "NATIVE", "WRAPPED"].contains($0.exchange ?? "") })
        }
    }

    @Test func theCommandsOfADESFireSessionAreNamedInOrder() throws {
        let rows = try rows(Self.workshop + "2-encrypted-comms/chal2.trace").filter { $0.isRequest }
        let names = ["SELECT_APPLICATION", "AUTHENTICATE_LEGACY", "AUTHENTICATE_PART_2", "GET_FILE_SETTINGS", "READ_DATA"]
        #expect(rows.compactMap(\.exchange).filter { names.contains($0) } == names)
    }

    @Test func anAnswerInTwoBlocksBelongsToItsCommand() throws {
        let rows = try rows(Self.traces + "hf_visa_apple_ecp.trace")
        let last = try #require(rows.last { $0.exchange == "SELECT" && !$0.isRequest })
        #expect(last.texts.contains("A0000000031010"))
        #expect(rows.contains { $0.exchange == "WTX" })
    }

    /// MIFARE Plus has a protocol of its own in the same blocks.
    @Test func whatIsNoAPDUInABlockStaysABlock() throws {
        let rows = try rows(Self.traces + "hf_mfp_mad_sl3.trace")
        #expect(rows.filter { $0.exchange == "BLOCK" }.count >= 10)
        #expect(rows.allSatisfy { !$0.codes.contains(.remark) })
    }
}
