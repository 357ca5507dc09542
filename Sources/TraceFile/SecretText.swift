// SPDX-License-Identifier: MIT

import Octets

/// A DESFire key as a line of text gives it. Which of several keys an authentication used is found by trying them.
public struct DESFireSecret: Sendable, Equatable {
    /// Three octets, in the card's order.
    public var application: [UInt8]
    public var keyNumber: UInt8
    /// `des 2k3des 3k3des aes lrp`.
    public var type: String
    public var octets: [UInt8]
    /// Whether it is the master key from which each card's own follows by its UID and the application (NXP AN10922).
    public var isDiversified = false

    static let lengths = ["des": [8, 16], "2k3des": [16], "3k3des": [24], "aes": [16], "lrp": [16]]
}

/// One line of the text form of secrets.
public enum SecretLine: Sendable, Equatable {
    /// `mrz L898902C<369080619406236`: number, birth and expiry, each with its check digit.
    case mrz(String)
    /// `can 123456`
    case can(String)
    /// `pin 123456`: the holder's number for PACE.
    case pin(String)
    /// `puk 12345678`: what unblocks the PIN.
    case puk(String)
    /// `desfire aid 01F4A1 key 0 aes 0011.. an10922`.
    case desfire(DESFireSecret)
    /// `scp03 kvn 30 enc .. mac .. dek ..`: the static keys of a security domain; the version may be left out.
    case scp03(version: UInt8?, enc: [UInt8], mac: [UInt8], dek: [UInt8])
    /// `bac.seed 0011..`: a grammar's name for a key, and the key.
    case given(name: String, octets: [UInt8])

    /// The key records that the line is.
    public var records: [SecretRecord] {
        switch self {
        case .mrz(let text): [SecretRecord(kind: .key, name: "mrz", octets: [UInt8](text.utf8))]
        case .can(let text): [SecretRecord(kind: .key, name: "can", octets: [UInt8](text.utf8))]
        case .pin(let text): [SecretRecord(kind: .key, name: "pin", octets: [UInt8](text.utf8))]
        case .puk(let text): [SecretRecord(kind: .key, name: "puk", octets: [UInt8](text.utf8))]
        case .given(let name, let octets): [SecretRecord(kind: .key, name: name, octets: octets)]
        case .scp03(_, let enc, let mac, let dek):
            [("enc", enc), ("mac", mac), ("dek", dek)].map {
                SecretRecord(kind: .key, name: "globalPlatform." + $0.0, octets: $0.1)
            }
        case .desfire(let secret):
            [SecretRecord(kind: .key, name: secret.isDiversified ? "desfire.master" : "desfire.key", octets: secret.octets)]
        }
    }

    /// Reads text that has a secret a line. `#` at the start of a line or after a blank begins a comment.
    ///
    /// - Parameter name: what the error calls the text: a file's name, or a variable's.
    /// - Throws: ``TraceFileError`` with the code `malformedSecret`, line and column.
    public static func parse(_ text: String, name: String) throws(TraceFileError) -> [SecretLine] {
        var lines: [SecretLine] = []
        var number = 0
        for raw in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            number += 1
            let words = Word.split(raw)
            guard let first = words.first else { continue }
            do throws(Fault) {
                lines.append(try line(first, words.dropFirst()))
            } catch {
                throw TraceFileError(.malformedSecret(line: number, column: error.column), path: name, detail: error.detail)
            }
        }
        return lines
    }

    private struct Fault: Error {
        var column: Int
        var detail: String
    }

    private struct Word {
        var text: String
        /// From 1, in characters.
        var column: Int
        var end: Int { column + text.count }

        static func split(_ line: Substring) -> [Word] {
            var words: [Word] = []
            var open: Word?
            for (place, character) in line.enumerated() {
                if character == " " || character == "\t" {
                    if let word = open { words.append(word) }
                    open = nil
                } else if open != nil {
                    open?.text.append(character)
                } else if character == "#" {
                    break
                } else {
                    open = Word(text: String(character), column: place + 1)
                }
            }
            if let word = open { words.append(word) }
            return words
        }
    }

    private static func line(_ first: Word, _ rest: ArraySlice<Word>) throws(Fault) -> SecretLine {
        switch first.text {
        case "mrz": return .mrz(try only(rest, after: first, "the key of the machine-readable zone"))
        case "can": return .can(try digits(rest, after: first, "card access number"))
        case "pin": return .pin(try digits(rest, after: first, "PIN"))
        case "puk": return .puk(try digits(rest, after: first, "PUK"))
        case "desfire":
            guard !rest.isEmpty else { throw Fault(column: first.end, detail: "nothing follows \(first.text)") }
            return .desfire(try desfire(first, rest))
        case "scp03": return try scp03(first, rest)
        default: return try given(first, rest)
        }
    }

    /// Pairs of a name and a value, in any order.
    private static func scp03(_ first: Word, _ rest: ArraySlice<Word>) throws(Fault) -> SecretLine {
        var values: [String: [UInt8]] = [:]
        var words = rest
        while let name = words.popFirst() {
            guard ["kvn", "enc", "mac", "dek"].contains(name.text), values[name.text] == nil else {
                throw Fault(column: name.column, detail: "scp03 takes kvn, enc, mac and dek, each once")
            }
            guard let value = words.popFirst() else { throw Fault(column: name.end, detail: "\(name.text) has no value") }
            do throws(HexError) {
                values[name.text] = try Hex.decode(value.text)
            } catch {
                throw Fault(column: value.column + min(error.offset, value.text.count), detail: "\(error)".inWord)
            }
            let lengths = name.text == "kvn" ? [1] : [16, 24, 32]
            guard lengths.contains(values[name.text]?.count ?? 0) else {
                throw Fault(
                    column: value.column,
                    detail: name.text == "kvn" ? "a key version is one byte" : "a key has 16, 24 or 32 bytes")
            }
        }
        guard let enc = values["enc"], let mac = values["mac"], let dek = values["dek"] else {
            throw Fault(column: first.end, detail: "scp03 needs enc, mac and dek")
        }
        return .scp03(version: values["kvn"]?.first, enc: enc, mac: mac, dek: dek)
    }

    private static func desfire(_ first: Word, _ rest: ArraySlice<Word>) throws(Fault) -> DESFireSecret {
        var words = rest
        func next(_ what: String) throws(Fault) -> Word {
            guard let word = words.popFirst() else { throw Fault(column: (rest.last ?? first).end, detail: "\(what) is missing") }
            return word
        }
        func keyword(_ text: String) throws(Fault) {
            let word = try next(text)
            guard word.text == text else { throw Fault(column: word.column, detail: "expected \(text), found \(word.text)") }
        }
        func octets(_ word: Word, _ counts: [Int], _ what: String) throws(Fault) -> [UInt8] {
            guard let octets = try? Hex.decode(word.text), counts.contains(octets.count) else {
                let lengths = counts.map(String.init).joined(separator: " or ")
                throw Fault(column: word.column, detail: "\(what) has \(lengths) bytes in hexadecimal")
            }
            return octets
        }
        try keyword("aid")
        let application = try octets(try next("the application"), [3], "an application identifier")
        try keyword("key")
        let number = try next("the key's number")
        guard let keyNumber = UInt8(number.text), keyNumber < 64 else {
            throw Fault(column: number.column, detail: "\(number.text) is no key number")
        }
        let type = try next("the key's type")
        guard let lengths = DESFireSecret.lengths[type.text] else {
            throw Fault(column: type.column, detail: "a key is des, 2k3des, 3k3des, aes or lrp, not \(type.text)")
        }
        var secret = DESFireSecret(
            application: application, keyNumber: keyNumber, type: type.text,
            octets: try octets(try next("the key"), lengths, "this key"))
        if let word = words.popFirst() {
            guard word.text == "an10922" || word.text == "[an10922]", words.isEmpty else {
                throw Fault(column: word.column, detail: "\(word.text) after the key; an10922 may stand there")
            }
            guard type.text != "des" else { throw Fault(column: word.column, detail: "a DES key cannot be diversified") }
            secret.isDiversified = true
        }
        return secret
    }

    private static func given(_ first: Word, _ rest: ArraySlice<Word>) throws(Fault) -> SecretLine {
        let parts = first.text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy(isName) else {
            throw Fault(column: first.column, detail: "a line begins with mrz, can, pin, puk, desfire, scp03 or GRAMMAR.GIVEN")
        }
        guard let value = rest.first else { throw Fault(column: first.end, detail: "\(first.text) has no value") }
        var octets: [UInt8] = []
        for word in rest {
            do throws(HexError) {
                octets += try Hex.decode(word.text)
            } catch {
                throw Fault(column: word.column + min(error.offset, word.text.count), detail: "\(error)".inWord)
            }
        }
        guard !octets.isEmpty else { throw Fault(column: value.column, detail: "\(first.text) has no value") }
        return .given(name: first.text, octets: octets)
    }

    private static func digits(_ rest: ArraySlice<Word>, after first: Word, _ what: String) throws(Fault) -> String {
        let text = try only(rest, after: first, "the \(what)")
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw Fault(column: rest.first?.column ?? first.end, detail: "a \(what) has digits only")
        }
        return text
    }

    private static func only(_ rest: ArraySlice<Word>, after first: Word, _ what: String) throws(Fault) -> String {
        guard let value = rest.first else { throw Fault(column: first.end, detail: "\(first.text) needs \(what)") }
        if let more = rest.dropFirst().first { throw Fault(column: more.column, detail: "\(first.text) takes one word") }
        return value.text
    }

    private static func isName(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, isLetter(first) else { return false }
        return text.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || $0 == 0x5F || $0 == 0x2D }
    }

    private static func isLetter(_ unit: UInt8) -> Bool { (0x41...0x5A).contains(unit) || (0x61...0x7A).contains(unit) }
}

extension String {
    /// An error's text without the place that the line's column gives better.
    fileprivate var inWord: String { range(of: " at character").map { String(self[..<$0]) } ?? self }

    private func range(of mark: String) -> String.Index? {
        indices.first { self[$0...].hasPrefix(mark) }
    }
}
