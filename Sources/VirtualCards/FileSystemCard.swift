// SPDX-License-Identifier: MIT

/// A plain contact card of ISO/IEC 7816-4: files, records, one PIN.
///
/// | file | where | what |
/// |---|---|---|
/// | `2F00` | MF, short id 1E | EF.DIR: the names of the two applications |
/// | `0001` | MF, short id 01 | 300 octets, readable always |
/// | `0002` | MF, short id 02 | 48 KiB; offsets above `7FFF` need the odd instruction code |
/// | `0003` | MF, short id 03 | 65,533 octets, as many as one answer holds |
/// | `0004` | MF, short id 04 | empty |
/// | `5000` | MF, name `F05441504445434B01` | the first application |
/// | `0101` | `5000`, short id 01 | a text, readable always |
/// | `0102` | `5000`, short id 02 | 256 octets, readable always, writable after VERIFY |
/// | `0103` | `5000`, short id 03 | a text, readable after VERIFY |
/// | `0104` | `5000`, short id 04 | five records of different lengths |
/// | `5100` | MF, name `F05441504445434B02` | the second application, with one file `0101` |
///
/// The PIN has the reference `01`; `81` and `00` mean the same one. It is sent as ASCII digits, with or without `FF` up to eight octets. Three wrong
/// ones block it, and ten wrong unblocking codes block those. What is written and counted stays over a reset.
///
/// A data field longer than Le asks for comes in pieces: `61xx` and GET RESPONSE. READ RECORD answers `6Cxx` instead.
public struct FileSystemCard: CardMachine {
    /// TD1 and TD2 say T=1, TA3 254 octets a block; the historical bytes say how files are selected and that lengths may be extended.
    public var atr: [UInt8] { Self.answerToReset }

    var files: FileTree
    var current = FileTree.Place(dedicated: 0)
    /// The current record of the current file, from 1; 0 when there is none.
    var record = 0
    var pin: Password
    var unblocking: Password
    private var random: CardRandom
    /// What GET RESPONSE gives next.
    private var waiting: ArraySlice<UInt8> = []

    public init(seed: UInt64 = 0, pin: String = "1234", unblockingCode: String = "12345678") {
        files = .specimen(seed: seed)
        random = CardRandom(seed: seed, use: "filesystem")
        self.pin = Password(Array(pin.utf8), tries: 3)
        unblocking = Password(Array(unblockingCode.utf8), tries: 10)
    }

    public mutating func powerOn() {
        current = FileTree.Place(dedicated: 0)
        record = 0
        waiting = []
        pin.isVerified = false
    }

    public mutating func answer(_ octets: [UInt8]) -> [UInt8] {
        do throws(StatusWord) {
            let command = try CardCommand(parsing: octets)
            if command.ins != 0xC0 { waiting = [] }
            var reply = try run(command)
            if let ne = command.ne, reply.data.count > ne, reply.status == .success {
                waiting = reply.data[ne...]
                reply.data.removeLast(waiting.count)
                reply.status = .moreAvailable(waiting.count)
            }
            return reply.octets
        } catch {
            return error.octets
        }
    }

    private mutating func run(_ command: CardCommand) throws(StatusWord) -> CardReply {
        try command.requirePlainClass()
        switch command.ins {
        case 0xA4: return try select(command)
        case 0xB0, 0xB1: return try readBinary(command)
        case 0xD6, 0xD7: return try updateBinary(command)
        case 0xB2: return try readRecord(command)
        case 0x20: return try verify(command)
        case 0x24: return try changeReferenceData(command)
        case 0x2C: return try resetRetryCounter(command)
        case 0x84: return try getChallenge(command)
        case 0xC0: return try getResponse(command)
        case 0xCA: return try getData(command)
        default: throw .instructionNotSupported
        }
    }

    private mutating func getChallenge(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.parameters == 0 else { throw .wrongParameters }
        guard let ne = command.ne, command.data.isEmpty, ne <= 256 else { throw .wrongLength }
        return CardReply(random.octets(command.wantsAll ? 8 : ne))
    }

    private mutating func getResponse(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.parameters == 0 else { throw .wrongParameters }
        guard command.data.isEmpty, command.ne != nil else { throw .wrongLength }
        guard !waiting.isEmpty else { throw .conditionsNotSatisfied }
        defer { waiting = [] }
        return CardReply(Array(waiting))
    }

    /// The answer to reset (`5F51`) and its historical bytes (`5F52`), as ISO/IEC 7816-4 annex names them.
    private func getData(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.data.isEmpty, command.ne != nil else { throw .wrongLength }
        switch command.parameters {
        case 0x5F51: return CardReply(atr)
        case 0x5F52: return CardReply(Self.historicalBytes)
        default: throw .referencedDataNotFound
        }
    }

    /// Category 80; capabilities: selection by name, part of a name, path, id, short id, record number; octets; extended lengths.
    private static let historicalBytes: [UInt8] = [0x80, 0x73, 0xF6, 0x01, 0x40]
    private static let answerToReset = AnswerToReset.contact(historicalBytes)
}

/// Answers to reset (ISO/IEC 7816-3 8.2).
enum AnswerToReset {
    /// A contact card with T=1, blocks of 254 octets, and the usual waiting times.
    static func contact(_ historical: [UInt8]) -> [UInt8] {
        checked([0x80 | UInt8(truncatingIfNeeded: historical.count & 0x0F), 0x81, 0x31, 0xFE, 0x45] + historical)
    }

    /// What a reader makes up for a contactless card of ISO/IEC 14443-4 (PC/SC part 3, 3.1.3.2.3.1).
    static func contactless(_ historical: [UInt8]) -> [UInt8] {
        checked([0x80 | UInt8(truncatingIfNeeded: historical.count & 0x0F), 0x80, 0x01] + historical)
    }

    /// TS before, TCK after.
    private static func checked(_ octets: [UInt8]) -> [UInt8] { [0x3B] + octets + [octets.reduce(0, ^)] }
}
