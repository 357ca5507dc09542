// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The applications and files of a virtual DESFire card as text.
///
/// A statement a line; `;` is as good as a line's end, `#` begins a comment. Numbers of keys and files are decimal, everything else of a
/// fixed length is hexadecimal.
///
/// ```
/// picc aes 00000000000000000000000000000000
/// app F00001 aes keys 3 settings 0F iso 1001 name D2760000850101
/// key 1 00112233445566778899AABBCCDDEEFF v 02
/// file 1 std 32 full 1230 iso E104 = 48656C6C6F
/// file 2 backup 32 mac 1230
/// file 3 value 0..1000 100 full 1230 limited
/// file 4 linear 16x5 plain EEEE
/// file 5 cyclic 16x5 full 1230
/// file 6 tmac plain 1F00 00112233445566778899AABBCCDDEEFF
/// ```
///
/// Access rights are read, write, both, change; an application's identifier stands as it travels.
struct DESFireDescription {
    private(set) var memory: DESFireMemory
    private var line = 0

    init(_ text: String, into memory: DESFireMemory) throws(VirtualCardError) {
        self.memory = memory
        for statement in text.split(omittingEmptySubsequences: false, whereSeparator: { $0 == "\n" || $0 == ";" }) {
            line += 1
            let code = statement.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)[0]
            var words = code.split(whereSeparator: { $0 == " " || $0 == "\t" })[...]
            guard let verb = words.popFirst() else { continue }
            switch verb {
            case "picc": try card(&words)
            case "app": try application(&words)
            case "key": try key(&words)
            case "file": try file(&words)
            default: throw error("'\(verb)' is no statement; known are picc, app, key and file")
            }
            if let word = words.first { throw error("'\(word)' is one word too many") }
        }
    }

    private mutating func card(_ words: inout ArraySlice<Substring>) throws(VirtualCardError) {
        let cipher = try cipher(&words)
        let octets = try octets(&words, "a key", cipher.keyLength)
        memory.card.cipher = cipher == .des ? .twoKeyTripleDES : cipher
        memory.card.keys = [DESFireCardKey(cipher, octets)]
        if words.first == "settings" {
            words.removeFirst()
            memory.card.settings = try self.octets(&words, "settings", 1)[0]
        }
    }

    private mutating func application(_ words: inout ArraySlice<Substring>) throws(VirtualCardError) {
        let identifier = try octets(&words, "an application identifier", 3)
        var cipher = DESFireCipher.aes
        if let word = words.first, DESFireCipher(rawValue: String(word)) != nil { cipher = try self.cipher(&words) }
        var application = DESFireApplication(
            identifier: identifier, settings: 0x0F, cipher: cipher == .des ? .twoKeyTripleDES : cipher,
            keys: [.zero(cipher)])
        while let word = words.first {
            words.removeFirst()
            switch word {
            case "keys": application.keys = Array(repeating: .zero(cipher), count: try number(&words, "a number of keys", 1...14))
            case "settings": application.settings = try octets(&words, "settings", 1)[0]
            case "iso": application.isoID = try id(&words)
            case "name":
                application.name = try octets(&words, "a name", nil)
                guard (1...16).contains(application.name.count) else { throw error("a name has 1 to 16 bytes") }
            default: throw error("'\(word)' is nothing of an application; known are keys, settings, iso and name")
            }
        }
        if !application.name.isEmpty, application.isoID == nil { throw error("an application with a name has an iso identifier") }
        if identifier == [0, 0, 0] || memory.applications.contains(where: { $0.identifier == identifier }) {
            throw error("application \(Hex.encode(identifier)) is there already")
        }
        memory.applications.append(application)
    }

    private mutating func key(_ words: inout ArraySlice<Substring>) throws(VirtualCardError) {
        let index = try current()
        let number = try number(&words, "a key's number", 0...13)
        guard memory.applications[index].keys.indices.contains(number) else {
            throw error("there is no key \(number); say keys \(number + 1) with the application")
        }
        let cipher = memory.applications[index].cipher
        var octets = try octets(&words, "a key", nil)
        if octets.count == 8, cipher == .twoKeyTripleDES { octets += octets }
        guard octets.count == cipher.keyLength else { throw error("a \(cipher.rawValue) key has \(cipher.keyLength) bytes") }
        var version: UInt8?
        if words.first == "v" {
            words.removeFirst()
            version = try self.octets(&words, "a version", 1)[0]
        }
        if cipher != .aes, let given = version { octets = DESFireKeyVersion.set(given, in: octets) }
        memory.applications[index].keys[number] = DESFireCardKey(cipher, octets, version: cipher == .aes ? version : nil)
    }

    private mutating func file(_ words: inout ArraySlice<Substring>) throws(VirtualCardError) {
        let index = try current()
        let number = UInt8(try number(&words, "a file's number", 0...31))
        let kind = try word(&words, "a kind of file")
        var content: DESFireContent
        switch kind {
        case "std", "backup":
            let zeros = [UInt8](repeating: 0, count: try self.number(&words, "a size", 1...8_192))
            content = kind == "std" ? .standard(zeros) : .backup(zeros)
        case "value":
            let bounds = try word(&words, "the bounds").split(separator: ".", omittingEmptySubsequences: true)
            guard bounds.count == 2, let lower = Int32(bounds[0]), let upper = Int32(bounds[1]),
                let value = Int32(try word(&words, "a value")), lower <= value, value <= upper
            else { throw error("a value file has LOWER..UPPER and a value between them") }
            content = .value(DESFireValue(lower: lower, upper: upper, value: value, allowsLimitedCredit: false))
        case "linear", "cyclic":
            let sizes = try word(&words, "SIZExRECORDS").split(separator: "x")
            guard sizes.count == 2, let size = Int(sizes[0]), let most = Int(sizes[1]), (1...8_192).contains(size),
                (kind == "cyclic" ? 2...8_192 : 1...8_192).contains(most)
            else { throw error("a record file has SIZExRECORDS, at least two records when it is cyclic") }
            content = .records(DESFireRecords(size: size, most: most, isCyclic: kind == "cyclic"))
        case "tmac": content = .transactionMAC(DESFireTransactionFile(key: [], keyVersion: 0))
        default: throw error("'\(kind)' is no kind of file; known are std, backup, value, linear, cyclic and tmac")
        }
        let mode = try word(&words, "plain, mac or full")
        guard let options: UInt8 = ["plain": 0, "mac": 1, "full": 3][mode] else {
            throw error("'\(mode)' is none of plain, mac and full")
        }
        let rights = try octets(&words, "access rights", 2)
        if case .transactionMAC(var file) = content {
            file.key = try octets(&words, "a key", 16)
            content = .transactionMAC(file)
        }
        var made = DESFireFile(
            isoID: nil, options: options, rights: UInt16(rights[0]) << 8 | UInt16(rights[1]), content: content)
        while let word = words.first {
            words.removeFirst()
            switch word {
            case "iso": made.isoID = try id(&words)
            case "limited":
                guard case .value(var value) = made.content else { throw error("only a value file can be limited") }
                value.allowsLimitedCredit = true
                made.content = .value(value)
            case "=": made.content = try filled(made.content, try octets(&words, "content", nil))
            default: throw error("'\(word)' is nothing of a file; known are iso, limited and =")
            }
        }
        guard memory.applications[index].files.updateValue(made, forKey: number) == nil else {
            throw error("file \(number) is there already")
        }
    }

    private func filled(_ content: DESFireContent, _ octets: [UInt8]) throws(VirtualCardError) -> DESFireContent {
        func over(_ data: [UInt8]) throws(VirtualCardError) -> [UInt8] {
            guard octets.count <= data.count else { throw error("\(octets.count) bytes do not fit a file of \(data.count)") }
            return octets + data.dropFirst(octets.count)
        }
        switch content {
        case .standard(let data): return .standard(try over(data))
        case .backup(let data): return .backup(try over(data))
        default: throw error("only a data file is filled")
        }
    }

    // MARK: - Words

    private func current() throws(VirtualCardError) -> Int {
        guard !memory.applications.isEmpty else { throw error("an app must come first") }
        return memory.applications.count - 1
    }

    private func word(_ words: inout ArraySlice<Substring>, _ what: String) throws(VirtualCardError) -> String {
        guard let word = words.popFirst() else { throw error("\(what) is missing") }
        return String(word)
    }

    private func number(
        _ words: inout ArraySlice<Substring>, _ what: String, _ range: ClosedRange<Int>
    ) throws(VirtualCardError) -> Int {
        let text = try word(&words, what)
        guard let number = Int(text), range.contains(number) else {
            throw error("\(what) is \(range.lowerBound) to \(range.upperBound), not '\(text)'")
        }
        return number
    }

    private func octets(
        _ words: inout ArraySlice<Substring>, _ what: String, _ count: Int?
    ) throws(VirtualCardError) -> [UInt8] {
        let text = try word(&words, what)
        guard let octets = try? Hex.decode(text), count == nil || octets.count == count else {
            throw error("\(what) is \(count.map { "\($0) bytes" } ?? "bytes") in hexadecimal, not '\(text)'")
        }
        return octets
    }

    private func id(_ words: inout ArraySlice<Substring>) throws(VirtualCardError) -> UInt16 {
        let octets = try octets(&words, "an iso identifier", 2)
        return UInt16(octets[0]) << 8 | UInt16(octets[1])
    }

    private func cipher(_ words: inout ArraySlice<Substring>) throws(VirtualCardError) -> DESFireCipher {
        let text = try word(&words, "a cipher")
        guard let cipher = DESFireCipher(rawValue: text) else {
            throw error("'\(text)' is no cipher; known are des, 2k3des, 3k3des and aes")
        }
        return cipher
    }

    private func error(_ detail: String) -> VirtualCardError {
        VirtualCardError(.badValue, "--layout: statement \(line): \(detail)", option: "layout")
    }
}
