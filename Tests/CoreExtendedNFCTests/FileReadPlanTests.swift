// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TagTransport
import Testing

@testable import CoreExtendedNFC

@Suite struct FileReadPlanTests {
    /// Runs a plan against a file, and gives the commands that were sent.
    private func run(
        _ plan: inout FileReadPlan, limit: Int = 100_000, answer: (CommandAPDU) throws -> ResponseAPDU
    ) throws -> (file: [UInt8], commands: [CommandAPDU]) {
        var commands: [CommandAPDU] = []
        while commands.count < limit {
            switch try plan.next() {
            case .finished(let octets): return (octets, commands)
            case .send(let command):
                commands.append(command)
                try plan.received(answer(command))
            }
        }
        throw FileReadError(.tooManySteps, "the plan went on for \(limit) commands")
    }

    private func plan(chunk: Int = 231, limit: Int = 10 << 20) -> FileReadPlan {
        FileReadPlan(name: "DG2", tag: 0x75, limit: limit, chunk: chunk)
    }

    private func file(_ length: Int) -> [UInt8] { TLV.encode(0x75, (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) }) }

    /// A chip that answers as ISO/IEC 7816-4 11.3 says, with READ BINARY of either kind.
    private func honest(_ file: [UInt8]) -> (CommandAPDU) throws -> ResponseAPDU {
        { command in
            let ne = command.ne ?? 0
            if command.ins == 0xB1 {
                let object = try TLV.first(in: Array(command.data ?? Data())[...])
                #expect(object.tag == 0x54)
                let offset = object.value.reduce(0) { $0 << 8 | Int($1) }
                let room = ne - (ne - 2 < 0x80 ? 2 : 3)
                return ResponseAPDU(data: Data(TLV.encode(0x53, file[offset...].prefix(room))), statusWord: 0x9000)
            }
            #expect(command.p1 < 0x80)
            let offset = Int(command.p1) << 8 | Int(command.p2)
            guard offset + ne <= file.count else { return ResponseAPDU(statusWord: 0x6B00) }
            return ResponseAPDU(data: Data(file[offset..<offset + ne]), statusWord: 0x9000)
        }
    }

    /// Wire facts row 39: 1,848 octets are four and eight pieces of what fits.
    @Test func fourOctetsThenTheRestInPieces() throws {
        var plan = plan()
        let file = file(1_844)
        #expect(file.count == 1_848)
        let (octets, commands) = try run(&plan, answer: honest(file))
        #expect(octets == file)
        #expect(commands.map { $0.ne } == [4] + Array(repeating: 231, count: 7) + [227])
        #expect(Hex.encode(commands[1].octets) == "00B00004E7")
    }

    @Test(arguments: [
        0, 1, 2, 3, 123, 124, 125, 126, 127, 128, 250, 252, 253, 0x7F00, 0x7FFC, 0x8000, 0x8100, 0xFFFF, 0x1_0000, 0x1_4000,
    ])
    func aFileOfAnyLengthIsReadWholeAndNeverPastItsEnd(length: Int) throws {
        for chunk in [16, 160, 223, 231, 256] {
            var plan = plan(chunk: chunk)
            // A file of fewer than four octets is shorter than the first read.
            let file = file(max(length, 2))
            #expect(try run(&plan, answer: honest(file)).file == file)
        }
    }

    /// Wire facts row 40: above 7FFF the offset goes in a DO 54, above FFFF with three octets.
    @Test func farOffsetsAreReadWithTheOddInstruction() throws {
        var plan = plan()
        let (_, commands) = try run(&plan, answer: honest(file(0x1_2000)))
        let odd = commands.filter { $0.ins == 0xB1 }
        #expect(odd.first?.data?.prefix(2) == Data([0x54, 0x02]))
        #expect(odd.last?.data?.prefix(3) == Data([0x54, 0x03, 0x01]))
        #expect(odd.allSatisfy { ($0.ne ?? 0) <= 231 })
        #expect(commands.filter { $0.ins == 0xB0 }.allSatisfy { $0.p1 < 0x80 })
    }

    @Test func shortAnswersGoOnWhereTheyEnd() throws {
        var plan = plan()
        let file = file(300)
        let honest = honest(file)
        let (octets, _) = try run(&plan) { command in
            let answer = try honest(command)
            return ResponseAPDU(data: answer.data.prefix(17), statusWord: 0x9000)
        }
        #expect(octets == file)
    }

    @Test func aWrongLengthHalvesThePieceOnce() throws {
        var plan = plan()
        let file = file(300)
        let honest = honest(file)
        let (octets, commands) = try run(&plan) { command in
            (command.ne ?? 0) > 128 ? ResponseAPDU(statusWord: 0x6700) : try honest(command)
        }
        #expect(octets == file)
        #expect(commands.map { $0.ne }.prefix(4) == [4, 231, 115, 115])
        var stubborn = self.plan()
        #expect(throws: FileReadError(.refused(0x6700), "")) {
            try run(&stubborn) { ($0.ne ?? 0) > 4 ? ResponseAPDU(statusWord: 0x6700) : try honest($0) }
        }
    }

    @Test func theLengthThatTheCardNamesIsAskedFor() throws {
        var plan = plan()
        let file = file(300)
        let honest = honest(file)
        let (octets, commands) = try run(&plan) { command in
            (command.ne ?? 0) > 0x20 ? ResponseAPDU(statusWord: 0x6C20) : try honest(command)
        }
        #expect(octets == file)
        #expect(commands.map { $0.ne }.prefix(4) == [4, 231, 32, 32])
    }

    /// ISO/IEC 7816-4 11.3.3: 6282 with the last octets is success, before them a file cut short.
    @Test func theEndOfFileWarningEndsTheFile() throws {
        let file = file(100)
        let honest = honest(file)
        var plan = plan()
        let (octets, _) = try run(&plan) { command in
            let answer = try honest(command)
            return ResponseAPDU(data: answer.data, statusWord: command.ne == 4 ? 0x9000 : 0x6282)
        }
        #expect(octets == file)
        var short = self.plan()
        #expect(throws: FileReadError(.truncated, "")) {
            try run(&short) { ResponseAPDU(data: try honest($0).data.prefix(3), statusWord: 0x6282) }
        }
    }

    @Test func aCardThatAnswersNothingEndsTheRead() {
        for word in [0x9000, 0x6282, 0x6B00, 0x6C00, 0x6CFF, 0x6C04, 0x6100, 0x6986] as [UInt16] {
            var plan = plan()
            #expect(throws: FileReadError.self) { try run(&plan, limit: 1_000) { _ in ResponseAPDU(statusWord: word) } }
        }
    }

    @Test func aCardThatAnswersMoreThanAskedEndsTheRead() {
        for length in [5, 256, 65_536] {
            var plan = plan()
            #expect(throws: FileReadError(.answer, "")) {
                try run(&plan) { _ in ResponseAPDU(data: Data(repeating: 0x75, count: length), statusWord: 0x9000) }
            }
        }
    }

    /// A file of ten megabytes handed out an octet at a time.
    @Test func singleOctetsOfALongFileComeToAnEnd() {
        var plan = plan()
        #expect(throws: FileReadError(.tooManySteps, "")) {
            try run(&plan, limit: 1_000_000) { command in
                let first: [UInt8] = [0x75, 0x83, 0x10, 0x00, 0x00]
                if command.ins == 0xB1 { return ResponseAPDU(data: Data([0x53, 0x01, 0x00]), statusWord: 0x9000) }
                let offset = Int(command.p1) << 8 | Int(command.p2)
                return ResponseAPDU(data: Data([offset < 5 ? first[offset] : 0]), statusWord: 0x9000)
            }
        }
    }

    @Test(arguments: ["7584FFFFFFFF", "758410000000", "7585FFFF", "7580", "1F8182838485", "FFFFFFFF", "61820100"])
    func lengthsAndTagsThatLieAreRefused(header: String) {
        var plan = plan(limit: 64 << 10)
        let file = octets(header) + [UInt8](repeating: 0, count: 64)
        let error = #expect(throws: FileReadError.self) { try run(&plan, limit: 1_000, answer: honest(file)) }
        #expect(error?.code == .tooLarge || error?.code == .encoding)
    }

    @Test func anAnswerThatIsNotWrappedIsRefused() {
        var plan = plan()
        let file = file(0x9000)
        let honest = honest(file)
        #expect(throws: FileReadError(.encoding, "")) {
            try run(&plan) { command in
                command.ins == 0xB1 ? ResponseAPDU(data: Data([0x54, 0x00]), statusWord: 0x9000) : try honest(command)
            }
        }
    }
}
