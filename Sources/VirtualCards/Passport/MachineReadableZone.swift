// SPDX-License-Identifier: MIT

/// The lines that are printed on a travel document for machines (ICAO 9303-3 4; TD3 9303-4, TD1 9303-5, TD2 9303-6).
public struct MachineReadableZone: Sendable, Equatable {
    /// Two lines of 44 (TD3) or 36 (TD2) characters, or three of 30 (TD1).
    public let lines: [String]

    /// The specimen of ICAO 9303-11 appendix D, with a first line of its own.
    public static let specimen = MachineReadableZone(
        checked: ["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C<3UTO6908061F9406236ZE184226B<<<<<14"]
    )

    private init(checked lines: [String]) { self.lines = lines }

    /// Lines apart, or joined; check digits are taken as they are.
    ///
    /// - Throws: ``VirtualCardError`` with the code `badValue`.
    public init(lines given: [String]) throws(VirtualCardError) {
        let text = given.joined()
        let (count, length) =
            switch text.utf8.count {
            case 88: (2, 44)
            case 72: (2, 36)
            case 90: (3, 30)
            default: (0, 0)
            }
        guard count > 0 else {
            throw Self.error("\(text.utf8.count) characters; two lines of 44 or 36 or three of 30 are wanted")
        }
        let octets = Array(text.utf8)
        guard octets.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || $0 == 0x3C }) else {
            throw Self.error("only A to Z, 0 to 9 and < are allowed")
        }
        if given.count > 1, given.map(\.utf8.count) != Array(repeating: length, count: count) {
            throw Self.error("\(given.count) lines of \(given.map { "\($0.utf8.count)" }.joined(separator: ", ")) characters")
        }
        lines = (0..<count).map { String(decoding: octets[$0 * length..<($0 + 1) * length], as: UTF8.self) }
    }

    /// The characters as DG1 holds them.
    var octets: [UInt8] { lines.flatMap { Array($0.utf8) } }

    /// MRZ_information (ICAO 9303-11 9.7.2, 9.7.3): number, birth and expiry, each with its check digit. A number too long for its
    /// field goes on in the optional data, up to the first filler (9303-5 4.2.2, 9303-6 4.2.2).
    var keyInformation: [UInt8] {
        let first = Array((lines.count == 3 ? lines[0].dropFirst(5) : lines[1][...]).utf8)
        let dates = Array(lines[1].utf8)
        let optional: ArraySlice<UInt8>
        let birth: Int
        let expiry: Int
        switch lines.count == 3 ? 30 : dates.count {
        case 30: (optional, birth, expiry) = (first[10...], 0, 8)
        case 36: (optional, birth, expiry) = (first[28..<35], 13, 21)
        default: (optional, birth, expiry) = ([], 13, 21)
        }
        var number = Array(first[..<10])
        if number[9] == 0x3C, !optional.isEmpty {
            let rest = optional.prefix { $0 != 0x3C }
            if !rest.isEmpty { number = number.dropLast() + rest }
        }
        return number + dates[birth..<birth + 7] + dates[expiry..<expiry + 7]
    }

    private static func error(_ detail: String) -> VirtualCardError {
        VirtualCardError(.badValue, "--mrz: \(detail)", option: "mrz")
    }
}
