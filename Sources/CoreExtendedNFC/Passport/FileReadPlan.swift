// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import TagTransport

/// How one selected file is read: its first four octets, then the rest that its length tells, in pieces.
///
/// A state machine without input or output. It never asks past the end of the file, and it ends whatever the card answers:
/// each step either brings octets or makes the piece smaller, and the number of steps has a bound.
struct FileReadPlan: Sendable {
    enum Action: Sendable {
        case send(CommandAPDU)
        case finished([UInt8])
    }

    private struct Request: Sendable {
        let length: Int
        let isOdd: Bool
    }

    let name: String
    private let tag: UInt32
    private let limit: Int
    private let shortIdentifier: UInt8?
    private var chunk: Int
    /// Octets to ask for at a time in a command of extended length; nil where none may be sent.
    private var longChunk: Int?
    private var wasHalved = false
    /// The most that the card refused as a wrong length; nil when it refused none.
    private(set) var refusedLength: Int?
    /// What the card takes at a time, once it refused more.
    private(set) var learntChunk: Int?
    private(set) var octets: [UInt8] = []
    /// The file's length, once its first octets told it.
    private(set) var total: Int?
    private var request: Request?
    private var steps = 0

    /// - Parameters:
    ///   - tag: the tag that the file begins with.
    ///   - limit: the most octets that the file may have.
    ///   - chunk: the octets to ask for at a time, at most 256.
    ///   - longChunk: the octets to ask for at a time in a long file when card and reader take extended lengths; nil when not.
    ///   - shortIdentifier: names the file in the first command; nil when it is selected.
    init(name: String, tag: UInt32, limit: Int, chunk: Int, longChunk: Int? = nil, shortIdentifier: UInt8? = nil) {
        self.longChunk = longChunk.map { min(max($0, 257), 65_000) }
        self.shortIdentifier = shortIdentifier
        self.name = name
        self.tag = tag
        self.limit = limit
        self.chunk = min(max(chunk, 4), 256)
    }

    /// The next command, or the whole file.
    mutating func next() throws(FileReadError) -> Action {
        if let total, octets.count >= total { return .finished(Array(octets[..<total])) }
        steps += 1
        // A card that hands out a few octets at a time is slow, one that hands out single octets of a long file is hostile.
        guard steps <= (total == nil ? 16 : 4_096 + (total ?? 0) / 12) else {
            throw FileReadError(.tooManySteps, "\(name): \(octets.count) bytes after \(steps - 1) commands")
        }
        let isOdd = octets.count > 0x7FFF
        // An odd READ BINARY wraps its answer in a data object, which takes two to four octets of the piece.
        let piece = (total ?? 0) > Self.longFile ? longChunk ?? chunk : chunk
        let room = isOdd ? piece - (piece > 258 ? 4 : 3) : piece
        let length = max(1, min(room, (total ?? octets.count + 4) - octets.count))
        request = Request(length: length, isOdd: isOdd)
        do { return .send(isOdd ? try oddRead(length) : try evenRead(length)) } catch {
            throw FileReadError(.answer, "\(name): \(error)")
        }
    }

    /// The plain answer to the last command.
    mutating func received(_ response: ResponseAPDU) throws(FileReadError) {
        guard let request else { throw FileReadError(.answer, "\(name): an answer to no command") }
        self.request = nil
        if response.statusWord == 0x6700 { refusedLength = max(refusedLength ?? 0, request.length) }
        switch response.statusWord {
        case 0x9000, 0x6282:
            try append(response, request)
        case 0x6700 where request.length > 256, 0x6C00...0x6CFF where request.length > 256:
            longChunk = nil
        case 0x6700 where !wasHalved && request.length > 1:
            wasHalved = true
            chunk = max(request.isOdd ? 8 : 1, min(chunk, request.length) / 2, 1)
            if octets.count >= 4 { learntChunk = chunk }
        case 0x6C01...0x6CFF where Int(response.sw2) < request.length:
            chunk = request.isOdd ? max(Int(response.sw2), 8) : Int(response.sw2)
            if octets.count >= 4 { learntChunk = chunk }
            if request.isOdd, Int(response.sw2) < 8 { throw refusal(response.statusWord) }
        default:
            throw refusal(response.statusWord)
        }
    }

    /// What to ask for at a time when the session had to be opened again after a wrong length: half of the last piece when the card
    /// refused that too, else the last piece; nil when no length was refused.
    func chunkAfter(_ lastWord: UInt16) -> Int? {
        guard refusedLength != nil, let last = request?.length else { return nil }
        return lastWord == 0x6700 ? max(last / 2, 16) : min(max(last, 16), chunk)
    }

    private mutating func append(_ response: ResponseAPDU, _ request: Request) throws(FileReadError) {
        let piece = request.isOdd ? try unwrapped(response.data) : Array(response.data)
        guard piece.count <= request.length else {
            throw FileReadError(.answer, "\(name): \(piece.count) bytes at \(octets.count), \(request.length) were asked for")
        }
        octets += piece
        if total == nil { try learnTotal() }
        let isWhole = total.map { octets.count >= $0 } ?? false
        if response.statusWord == 0x6282, !isWhole {
            throw FileReadError(.truncated, "\(name): the card says that the file ends at \(octets.count)\(ofTotal) bytes")
        }
        if piece.isEmpty { throw FileReadError(.answer, "\(name): 9000 and no bytes at \(octets.count)\(ofTotal)") }
    }

    private mutating func learnTotal() throws(FileReadError) {
        let header: (tag: UInt32, headerLength: Int, valueLength: Int)?
        do { header = try TLV.header(in: octets[...]) } catch {
            throw FileReadError(.encoding, "\(name): \(error)")
        }
        guard let header else { return }
        guard header.tag == tag else {
            throw FileReadError(
                .encoding,
                "\(name): begins with tag \(String(header.tag, radix: 16, uppercase: true)), not \(String(tag, radix: 16, uppercase: true))"
            )
        }
        let total = header.headerLength + header.valueLength
        guard total <= limit else {
            throw FileReadError(.tooLarge, "\(name): says that it has \(total) bytes; \(limit) are the most")
        }
        self.total = total
    }

    private func evenRead(_ length: Int) throws(APDUError) -> CommandAPDU {
        let named = octets.isEmpty ? shortIdentifier.map { 0x80 | $0 } : nil
        return try CommandAPDU(
            cla: 0, ins: 0xB0, p1: named ?? UInt8(truncatingIfNeeded: octets.count >> 8),
            p2: UInt8(truncatingIfNeeded: octets.count), ne: length)
    }

    /// Offsets above 7FFF go in a DO 54 (ISO/IEC 7816-4 11.3.3).
    private func oddRead(_ length: Int) throws(APDUError) -> CommandAPDU {
        let offset = octets.count
        let low = [UInt8(truncatingIfNeeded: offset >> 8), UInt8(truncatingIfNeeded: offset)]
        let value = offset > 0xFFFF ? [UInt8(truncatingIfNeeded: offset >> 16)] + low : low
        return try CommandAPDU(
            cla: 0, ins: 0xB1, p1: 0, p2: 0, data: Data(TLV.encode(0x54, value)),
            ne: length + 1 + TLV.lengthOctets(length).count)
    }

    /// Longer files are worth commands of extended length.
    private static let longFile = 4_096

    private func unwrapped(_ data: Data) throws(FileReadError) -> [UInt8] {
        let octets = Array(data)
        do {
            let object = try TLV.first(in: octets[...])
            guard object.tag == 0x53 else {
                throw FileReadError(.encoding, "\(name): the answer at \(self.octets.count) is not wrapped in 53")
            }
            return Array(object.value)
        } catch let error as FileReadError {
            throw error
        } catch {
            throw FileReadError(.encoding, "\(name): the answer at \(self.octets.count): \(error)")
        }
    }

    private var ofTotal: String { total.map { " of \($0)" } ?? "" }

    private func refusal(_ word: UInt16) -> FileReadError {
        FileReadError(.refused(word), "\(name): \(hexText(word)) \(statusText(word)) to READ BINARY at \(octets.count)\(ofTotal)")
    }
}

/// Why a file was not read whole. Equality is on the code.
struct FileReadError: DetailedError {
    enum Code: Equatable {
        /// The card refused SELECT or READ BINARY with this status word.
        case refused(UInt16)
        /// An answer without octets, or with more than were asked for.
        case answer
        /// The octets are no data object of the file's tag.
        case encoding
        case tooLarge
        /// The file ends before its own length.
        case truncated
        case tooManySteps
    }

    let code: Code
    let detail: String

    init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}

/// What ISO/IEC 7816-4 5.6 says about the status words that people meet.
func statusText(_ word: UInt16) -> String {
    switch word {
    case 0x6282: "end of file"
    case 0x6300: "authentication failed"
    case 0x6700: "wrong length"
    case 0x6882: "no secure messaging here"
    case 0x6982: "security status not satisfied"
    case 0x6983: "blocked"
    case 0x6985: "conditions not satisfied"
    case 0x6987: "secure messaging objects missing"
    case 0x6988: "secure messaging objects wrong"
    case 0x6A80: "wrong data"
    case 0x6A82: "not found"
    case 0x6A86: "wrong P1-P2"
    case 0x6A88: "key or data not found"
    case 0x6B00: "offset outside the file"
    case 0x6D00: "unknown command"
    case 0x6E00: "unknown class"
    default: "refused"
    }
}
