// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

/// The names of files and applications, from enumerations of the grammars with these names:
///
/// - `Application`: what selects the application that a grammar is about, by DF name (ISO/IEC 7816-4 5.3.1.1).
/// - `FileID`: the files of that application by identifier; in a grammar without `Application`, files of every card.
///   What stands behind a comma explains and is no part of a name.
/// - `MasterFile`: files directly under the master file.
struct FileNames: Sendable {
    /// Whose files an identifier is looked for among.
    enum Place: Sendable, Equatable {
        /// Where every card begins.
        case masterFile
        /// An application with the grammar that is about it; nil when none is.
        case application(String?)
    }

    private struct Group: Sendable {
        var grammar: String
        var application: Enumeration?
        var files: Enumeration?
        var masterFiles: Enumeration?
    }

    private let strings: [String]
    private var groups: [Group] = []

    init(_ program: Program) {
        strings = program.strings
        for grammar in program.grammars {
            let group = Group(
                grammar: grammar.name, application: program.enumeration("\(grammar.name).Application"),
                files: program.enumeration("\(grammar.name).FileID"),
                masterFiles: program.enumeration("\(grammar.name).MasterFile")
            )
            if group.application != nil || group.files != nil || group.masterFiles != nil { groups.append(group) }
        }
    }

    /// The application that a DF name selects, and its own name: `eMRTD application`.
    func application(_ name: [UInt8]) -> (place: Place, text: String?) {
        let value = number(name)
        for group in groups {
            guard let names = group.application, names.bits == name.count * 8, let entry = names.find(value) else { continue }
            return (.application(group.grammar), names.entries[entry].text)
        }
        return (.application(nil), nil)
    }

    /// The file with this identifier: its text, and the grammar's name for it.
    func file(_ identifier: UInt16, in place: Place) -> (text: String, grammar: String, name: String)? {
        for group in groups {
            let isHere = group.application == nil || place == .application(group.grammar)
            let tables = [isHere ? group.files : nil, place == .masterFile ? group.masterFiles : nil]
            for case .some(let table) in tables {
                guard let entry = table.find(UInt64(identifier)) else { continue }
                let text = table.entries[entry].text.prefix { $0 != "," }
                return (String(text), group.grammar, strings[table.entries[entry].name])
            }
        }
        return nil
    }

    private func number(_ octets: [UInt8]) -> UInt64 { octets.count > 8 ? 0 : octets.reduce(0) { $0 << 8 | UInt64($1) } }
}

extension Program {
    /// The enumeration that a grammar declares: `iso7816.Status`.
    func enumeration(_ name: String) -> Enumeration? { enumerations.first { $0.name == name } }
}

/// `40000` as `40,000`.
func grouped(_ number: some BinaryInteger) -> String {
    let digits = Array("\(number)".utf8)
    var text: [UInt8] = []
    for (index, digit) in digits.enumerated() {
        let left = digits.count - index
        if index > 0, left % 3 == 0, digits[index - 1] != 0x2D { text.append(0x2C) }
        text.append(digit)
    }
    return String(decoding: text, as: UTF8.self)
}
