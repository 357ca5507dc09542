// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage
import GrammarRuntime
import Octets
import TestSupport
import Testing

/// The laws on what real cards and programs said.
@Suite(.enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence)))
struct Captures {
    private func lines(_ path: String) throws -> [String] {
        let url = try #require(SharedData.folder).appendingPathComponent("data").appendingPathComponent(path)
        // Latin-1 reads any file: names in these lists are not all UTF-8.
        return try String(contentsOf: url, encoding: .isoLatin1).split(whereSeparator: \.isNewline).map(String.init)
    }

    /// Pushes `frames` and says what broke a law; the decoder keeps the last exchange.
    private func laws(_ frames: [(octets: [UInt8], isRequest: Bool)]) throws -> (names: [String], broken: [String]) {
        var decoder = Decoder(Shipped.set.program)
        let command = try #require(Shipped.set.program.entry(named: "iso7816.Command"))
        let response = try #require(Shipped.set.program.entry(named: "iso7816.Response"))
        var names: [String] = []
        var broken: [String] = []
        for (number, frame) in frames.enumerated() {
            let outcome =
                frame.isRequest
                ? decoder.push(request: frame.octets, entry: command, exchange: number)
                : decoder.push(response: frame.octets, entry: response, exchange: number)
            if let breach = GrammarLaws.breach(&decoder, outcome, frame.octets) {
                broken.append("\(Hex.encode(frame.octets)): \(breach)")
            }
            guard frame.isRequest else { continue }
            let ins = outcome.spans.first { decoder.path(of: $0) == "iso7816.command.ins" }
            names.append(ins.flatMap { decoder.text(of: $0) } ?? "?")
        }
        return (names, broken)
    }

    @Test func theDumpOfAProgram() throws {
        var frames: [(octets: [UInt8], isRequest: Bool)] = []
        var isRequest = true
        for line in try lines("martinpaljak__apdu4j/pcsc/src/test/resources/apdu4j/pcsc/test.dump") {
            if line.hasPrefix("#") {
                isRequest = line.hasPrefix("# Sent")
            } else if let octets = try? Hex.decode(line), !octets.isEmpty {
                frames.append((octets, isRequest))
            }
        }
        let (names, broken) = try laws(frames)
        #expect(frames.count > 4)
        #expect(broken.isEmpty, "\(broken)")
        #expect(names.contains("SELECT"))
    }

    @Test(arguments: ["TestAuthenticateAES128", "TestGeneralCommands", "TestFileManagementCommandsSupport"])
    func wrappedCommandsOfDESFireAreAllNamed(_ name: String) throws {
        let folder = "maxieds__ChameleonMiniDESFireStack/Firmware/Chameleon-Mini/Application/DESFire/Testing/SampleOutputDumps/"
        var frames: [(octets: [UInt8], isRequest: Bool)] = []
        for line in try lines(folder + name + ".dump") {
            let text = line.trimmingCharacters(in: .whitespaces)
            guard text.hasPrefix("->") || text.hasPrefix("<-") else { continue }
            if let octets = try? Hex.decode(text.dropFirst(2).filter { $0 != "|" }) {
                frames.append((octets, text.hasPrefix("->")))
            }
        }
        let (names, broken) = try laws(frames)
        #expect(names.count > 3)
        #expect(broken.isEmpty, "\(broken)")
        #expect(!names.contains { $0.hasSuffix("unknown") }, "\(names)")
    }

    @Test func thePublicListOfATRs() throws {
        var decoder = Decoder(Shipped.set.program)
        let entry = try #require(Shipped.set.program.entry(named: "atr.Atr"))
        var (count, held, failed) = (0, 0, 0)
        for line in try lines("LudovicRousseau__pcsc-tools/smartcard_list.txt")
        where line.hasPrefix("3B ") || line.hasPrefix("3F ") {
            guard let octets = try? Hex.decode(line) else { continue }
            count += 1
            let outcome = decoder.push(request: octets, entry: entry)
            if let breach = GrammarLaws.breach(&decoder, outcome, octets) {
                Issue.record("\(line): \(breach)")
                return
            }
            for annotation in decoder.annotations[outcome.annotations] {
                let path = annotation.span >= 0 ? decoder.path(of: Int(annotation.span)) : ""
                guard path == "atr.atr.tck" else { continue }
                if annotation.code == .held { held += 1 }
                if annotation.code == .failed { failed += 1 }
            }
        }
        #expect(count > 2000)
        // The list has ATRs with a wrong check character; they are few.
        #expect(held > 20 * failed, "\(held) held, \(failed) failed of \(count)")
    }
}
