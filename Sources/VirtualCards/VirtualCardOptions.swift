// SPDX-License-Identifier: MIT

import Octets

/// An option of a kind of virtual card.
public struct VirtualCardOption: Sendable, Equatable {
    /// Without dashes.
    public let name: String
    /// What its value stands for in a help text; nil for a switch, which has no value.
    public let placeholder: String?
    public let summary: String

    public init(_ name: String, _ placeholder: String?, _ summary: String) {
        self.name = name
        self.placeholder = placeholder
        self.summary = summary
    }
}

/// A virtual card as people write it: its kind and its options.
///
/// Two spellings mean the same: the arguments `--seed 7 --fault remove@12,6C@3`, and the reference
/// `virtual:passport?seed=7&fault=remove%4012,6C%403` with long options without dashes, `&` between them and `%xx` for any octet. A list has commas.
/// `options FILE` in either adds those of a file, an option a line; what stands beside it wins. A specification holds what came of both.
public struct VirtualCardSpecification: Sendable, Equatable {
    public let kind: String
    public let options: VirtualCardOptions

    /// Reads a reference; the leading `virtual:` may be left out.
    ///
    /// - Throws: ``VirtualCardError``; a kind or an option that is not known is named with the nearest one that is.
    public init(reference: String) throws(VirtualCardError) {
        let text = reference.hasPrefix("virtual:") ? reference.dropFirst("virtual:".count) : reference[...]
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let kind = try VirtualCardCatalog.kind(named: String(parts[0]))
        var options = VirtualCardOptions()
        var column = reference.count - text.count + parts[0].count + 2
        if parts.count == 2, !parts[1].isEmpty {
            for item in parts[1].split(separator: "&", omittingEmptySubsequences: false) {
                let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                let name = try Self.unescaped(pair[0], column)
                let value = pair.count == 2 ? try Self.unescaped(pair[1], column + pair[0].count + 1) : nil
                try options.set(name, value, of: kind, column: column)
                column += item.count + 1
            }
        }
        self.kind = kind.name
        self.options = try options.withThoseOfItsFile(kind)
    }

    /// Reads command line arguments: `--name value`, `--name=value`, and `--name` for a switch.
    ///
    /// - Throws: ``VirtualCardError`` as above, and for an argument that is no option.
    public init(kind: String, arguments: [String]) throws(VirtualCardError) {
        let kind = try VirtualCardCatalog.kind(named: kind)
        var options = VirtualCardOptions()
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("--"), argument.count > 2 else {
                throw VirtualCardError(.strayArgument, "'\(argument)' is no option of the \(kind.name) card")
            }
            let pair = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(pair[0])
            var value = pair.count == 2 ? String(pair[1]) : nil
            if value == nil, kind.option(named: name)?.placeholder != nil { value = rest.popFirst() }
            try options.set(name, value, of: kind, column: nil)
        }
        self.kind = kind.name
        self.options = try options.withThoseOfItsFile(kind)
    }

    /// The reference, options sorted by name.
    public var reference: String {
        let pairs = options.values.sorted { $0.key < $1.key }.map { name, value in
            value.isEmpty ? name : "\(name)=\(Self.escaped(value))"
        }
        return "virtual:\(kind)" + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&"))
    }

    private static func unescaped(_ text: Substring, _ column: Int) throws(VirtualCardError) -> String {
        var octets: [UInt8] = []
        var rest = text.utf8[...]
        while let unit = rest.popFirst() {
            guard unit == 0x25 else {
                octets.append(unit)
                continue
            }
            guard let high = rest.popFirst().flatMap(Hex.value), let low = rest.popFirst().flatMap(Hex.value) else {
                throw VirtualCardError(.badEscape, "'\(text)': % wants two hexadecimal digits after it", column: column)
            }
            octets.append(high << 4 | low)
        }
        guard let result = String(validating: octets, as: UTF8.self) else {
            throw VirtualCardError(.badEscape, "'\(text)' does not spell UTF-8", column: column)
        }
        return result
    }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for unit in text.utf8 {
            switch unit {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2C, 0x2D, 0x2E, 0x5F, 0x7E:
                result.unicodeScalars.append(Unicode.Scalar(unit))
            default: result += "%" + Hex.encode([unit])
            }
        }
        return result
    }
}

/// The options given for one virtual card. A switch that is on has an empty value.
public struct VirtualCardOptions: Sendable, Equatable {
    public private(set) var values: [String: String] = [:]
    /// Every option that was given, switches that are off too.
    private var given: Set<String> = []
    /// Where those of a file stand in it.
    private var places: [String: VirtualCardOptionsFile.Place] = [:]

    public init() {}

    public static func == (left: Self, right: Self) -> Bool { left.values == right.values }

    public subscript(name: String) -> String? { values[name] }

    /// Whether the switch is on.
    public func isOn(_ name: String) -> Bool { values[name] != nil }

    /// The parts of a list; nil when the option is not given.
    public func list(_ name: String) -> [String]? { values[name]?.split(separator: ",").map(String.init) }

    /// A whole number that is not negative.
    ///
    /// - Throws: ``VirtualCardError`` with the code `badValue`.
    public func number(_ name: String, in range: ClosedRange<UInt64> = 0...UInt64.max) throws(VirtualCardError) -> UInt64? {
        guard let text = values[name] else { return nil }
        guard let number = UInt64(text), range.contains(number) else {
            let wanted =
                range.upperBound == .max ? "a whole number" : "a whole number from \(range.lowerBound) to \(range.upperBound)"
            throw VirtualCardError(.badValue, "--\(name) takes \(wanted), not '\(text)'", option: name)
        }
        return number
    }

    /// The seed of the card's own random source; 0 when not given.
    public func seed() throws(VirtualCardError) -> UInt64 { try number("seed") ?? 0 }

    public func faults() throws(VirtualCardError) -> FaultPlan { try FaultPlan(parsing: values["fault"]) }

    mutating func set(
        _ name: String, _ value: String?, of kind: VirtualCardKind, column: Int?, place: VirtualCardOptionsFile.Place? = nil
    ) throws(VirtualCardError) {
        guard let option = kind.option(named: name) else {
            let hint = VirtualCardError.nearest(to: name, in: kind.options.map(\.name)).map { "; did you mean --\($0)" } ?? ""
            throw VirtualCardError(
                .unknownOption, "unknown option --\(name) of the \(kind.name) card\(hint)", option: name, column: column)
        }
        guard given.insert(name).inserted else {
            throw VirtualCardError(.repeatedOption, "--\(name) is given twice", option: name, column: column)
        }
        switch (option.placeholder, value) {
        case (nil, nil), (nil, "yes"): values[name] = ""
        case (nil, "no"): break
        case (nil, .some(let value)):
            throw VirtualCardError(
                .badValue, "--\(name) is a switch; '\(value)' is neither yes nor no", option: name, column: column)
        case (.some(let placeholder), nil):
            throw VirtualCardError(.missingValue, "--\(name) needs a value: \(placeholder)", option: name, column: column)
        case (.some, .some(let value)): values[name] = value
        }
        places[name] = place
    }

    /// With the options of the file that `options` names where they are not given here.
    fileprivate func withThoseOfItsFile(_ kind: VirtualCardKind) throws(VirtualCardError) -> VirtualCardOptions {
        guard let path = values["options"] else { return self }
        var options = self
        options.values["options"] = nil
        let file = try VirtualCardOptionsFile.load(path, of: kind)
        for (name, value) in file.values where !given.contains(name) {
            options.values[name] = value
            options.places[name] = file.places[name]
        }
        return options
    }

    /// The error with the place in the file of the option that it is about, if that stands in one.
    func placed(_ error: VirtualCardError) -> VirtualCardError {
        guard let option = error.option, let place = places[option] else { return error }
        return place.error(error, at: place.valueColumn + (error.column ?? 1) - 1)
    }
}

extension FaultPlan {
    init(parsing text: String?) throws(VirtualCardError) {
        if let text { try self.init(parsing: text) } else { self.init() }
    }
}
