// SPDX-License-Identifier: MIT

public import Foundation

/// A folder that goes away with the value.
public final class TemporaryFolder: Sendable {
    public let path: String

    public init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("tapdeck-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in it.
    public func callAsFunction(_ name: String) -> String { "\(path)/\(name)" }

    public func octets(_ name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: self(name)))) }

    @discardableResult
    public func write(_ octets: [UInt8], _ name: String) throws -> String {
        try Data(octets).write(to: URL(fileURLWithPath: self(name)))
        return self(name)
    }

    @discardableResult
    public func write(_ text: String, _ name: String) throws -> String { try write(Array(text.utf8), name) }
}

/// The package's own files, for promises about structure and for tests that read what is kept in it.
public enum PackageFiles {
    public static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The files below a folder of the package with an ending, their paths from the package's root, sorted.
    public static func files(in folder: String, ending: String) -> [String] {
        let start = root.appendingPathComponent(folder)
        let names = FileManager.default.enumerator(atPath: start.path)?.compactMap { $0 as? String } ?? []
        return names.filter { $0.hasSuffix(ending) }.map { "\(folder)/\($0)" }.sorted()
    }

    public static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }
}

/// Random numbers that are the same in every run.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    // SplitMix64.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }

    public mutating func octets(_ count: Int) -> [UInt8] {
        var octets: [UInt8] = []
        octets.reserveCapacity(count)
        while octets.count < count {
            var word = next()
            for _ in 0..<min(8, count - octets.count) {
                octets.append(UInt8(truncatingIfNeeded: word))
                word >>= 8
            }
        }
        return octets
    }
}
