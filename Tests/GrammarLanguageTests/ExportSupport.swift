// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage
import GrammarRuntime
import Octets
import TestSupport

enum ExportSupport {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Grammars").path

    static let sources: [GrammarSource] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.sorted().filter { $0.hasSuffix(".grammar") }.compactMap { name in
            (try? String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)).map { GrammarSource(name: name, text: $0) }
        }
    }()

    static let program = GrammarSet.compile(sources, runningExamples: false).program

    static func has(_ tool: String) -> Bool {
        (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
            .contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(tool)") }
    }

    static let tapdeck: String? = {
        let path = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("tapdeck")
            .path
        return FileManager.default.isExecutableFile(atPath: path) ? path : nil
    }()

    /// The frames of every example that stock dissectors take, request by request.
    static func exampleFrames(_ program: Program) -> [Capture.Frame] {
        let command = program.entry(named: "iso7816.Command")
        let atr = program.entry(named: "atr.Atr")
        let block = program.entry(named: "iso14443.Block")
        return program.exampleFrames.compactMap { frame in
            if frame.octets.isEmpty { return nil }
            if frame.entry == command { return .init(kind: .command, octets: frame.octets) }
            if frame.entry == atr, frame.octets[0] == 0x3B || frame.octets[0] == 0x3F {
                return .init(kind: .atr, octets: frame.octets)
            }
            if frame.entry == block || (block != nil && program.name(program.roots[frame.entry].node) == "iso14443.block") {
                return .init(kind: frame.isRequest ? .blockCommand : .blockAnswer, octets: frame.octets)
            }
            if program.roots[frame.entry].name == "iso7816.Response" { return .init(kind: .response, octets: frame.octets) }
            return nil
        }
    }

    /// The composites that have a value: no secret inside, and no plain field of the same path.
    private static let composites: Set<Int> = {
        var leaves: Set<String> = []
        // A tag without fields is one itself.
        let parents = Set(program.nodes.filter { $0.kind != .header && $0.kind != .value }.map { Int($0.parent) })
        var covering: Set<Int> = []
        for (index, node) in program.nodes.enumerated() {
            if [.number, .octets, .text, .decimal].contains(node.kind) || node.kind == .bits && !node.flags.contains(.unnamed) {
                leaves.insert(program.path(index))
            }
            var above = node.flags.contains(.secret) ? index : -1
            while above >= 0, covering.insert(above).inserted { above = Int(program.nodes[above].parent) }
        }
        return Set(
            program.nodes.indices.filter { index in
                let node = program.nodes[index]
                return [.composite, .choice, .tag].contains(node.kind) && !node.flags.contains(.unnamed)
                    && (node.kind != .tag || parents.contains(index)) && !covering.contains(index)
                    && !leaves.contains(program.path(index))
            })
    }()

    /// What our decoder finds in a frame, its own octets only.
    ///
    /// - Returns: the fields of the frame itself, and those of what was put together from several.
    static func fields(_ frame: Capture.Frame, _ decoder: inout Decoder) -> (own: [ShownField], joined: [ShownField]) {
        let program = decoder.program
        let outcome: Decoder.Outcome
        switch frame.kind {
        case .command: outcome = decoder.push(request: frame.octets, entry: program.entry(named: "iso7816.Command") ?? 0)
        case .response: outcome = decoder.push(response: frame.octets, entry: program.entry(named: "iso7816.Response") ?? 0)
        case .blockCommand: outcome = decoder.push(request: frame.octets, entry: program.entry(named: "iso14443.Block") ?? 0)
        case .blockAnswer: outcome = decoder.push(response: frame.octets, entry: program.entry(named: "iso14443.Block") ?? 0)
        case .atr:
            var apart = Decoder(program)
            let outcome = apart.push(request: frame.octets, entry: program.entry(named: "atr.Atr") ?? 0)
            return (outcome.spans.compactMap { field($0, apart, .frame) }, [])
        }
        return (
            outcome.spans.compactMap { field($0, decoder, .frame) }, outcome.spans.compactMap { field($0, decoder, .gathered) }
        )
    }

    /// Wireshark has no place behind the last octet: what is empty there stands at the last one.
    private static func field(_ index: Int, _ decoder: Decoder, _ origin: DecodedBuffer.Origin) -> ShownField? {
        guard var field = plainField(index, decoder, origin) else { return nil }
        let end = decoder.buffers[Int(decoder.spans[index].buffer)].count
        if field.count == 0, field.start >= end, end > 0 { field.start = end - 1 }
        return field
    }

    private static func plainField(_ index: Int, _ decoder: Decoder, _ origin: DecodedBuffer.Origin) -> ShownField? {
        let span = decoder.spans[index]
        let node = decoder.program.nodes[Int(span.node)]
        guard decoder.buffers[Int(span.buffer)].origin == origin, !node.flags.contains(.secret) else { return nil }
        let path = decoder.path(of: index)
        switch node.kind {
        case .root, .alternative, .unknownTag: return nil
        case .composite, .choice, .tag:
            guard composites.contains(Int(span.node)), node.kind == .tag || decoder.isComposite(index) else { return nil }
            let inside = decoder.spans[index...].filter { $0.parent == index }
            let kinds = inside.map { decoder.program.nodes[Int($0.node)].kind }
            // Of a tag what stands behind its head.
            let head = zip(inside, kinds).first { $1 == .header }?.0.count ?? 0
            guard span.count > head || node.kind == .tag else { return nil }
            return ShownField(
                path: path, start: span.start + head, count: span.count - head,
                value: Hex.encode(decoder.octets(of: index).suffix(span.count - head)))
        case .bits:
            guard !node.flags.contains(.unnamed), span.count > 0 else { return nil }
            return ShownField(path: path, start: span.start, count: span.count, value: String(span.value))
        case .bit:
            let group = decoder.spans[Int(span.parent)]
            return ShownField(path: path, start: group.start, count: group.count, value: String(span.value))
        case .number: return ShownField(path: path, start: span.start, count: span.count, value: String(span.value))
        default: return ShownField(path: path, start: span.start, count: span.count, value: Hex.encode(decoder.octets(of: index)))
        }
    }
}

/// A folder that goes when the test ends.
final class Scratch {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "tapdeck-export-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ name: String, _ text: String) throws -> String { try write(name, Array(text.utf8)) }

    func write(_ name: String, _ octets: [UInt8]) throws -> String {
        let file = "\(path)/\(name)"
        try Data(octets).write(to: URL(fileURLWithPath: file))
        return file
    }
}

/// Captures of link type 252, whose packets name their dissector.
enum Capture {
    enum Kind { case command, response, atr, blockCommand, blockAnswer }

    struct Frame {
        var kind: Kind
        var octets: [UInt8]
        var number: Int?
        var interface = 0
    }

    static func exportedPDUs(_ frames: [Frame]) -> [UInt8] {
        var file: [UInt8] = [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 252, 0, 0, 0]
        for (index, frame) in frames.enumerated() {
            let packet = packet(frame)
            file +=
                little(UInt32(1000 + index)) + little(0) + little(UInt32(packet.count)) + little(UInt32(packet.count)) + packet
        }
        return file
    }

    private static func packet(_ frame: Frame) -> [UInt8] {
        let isSent = frame.kind == .command || frame.kind == .blockCommand
        let isBlock = frame.kind == .blockCommand || frame.kind == .blockAnswer
        let name = Array((isBlock ? "iso14443" : "iso7816\0").utf8)
        var packet: [UInt8] = [0, 12, 0, 8] + name + [0, 0x23, 0, 4, 0, 0, 0, isSent ? 0 : 1, 0, 0, 0, 0]
        if isBlock { packet += [0, isSent ? 0xFE : 0xFF, UInt8(frame.octets.count >> 8), UInt8(frame.octets.count & 0xFF)] }
        return packet + frame.octets
    }

    static func little(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }

    /// A pcapng file with two interfaces, without packet ids.
    static func twoInterfaces(_ frames: [(interface: Int, frame: Frame)]) -> [UInt8] {
        func block(_ type: UInt32, _ body: [UInt8]) -> [UInt8] {
            let padded = body + [UInt8](repeating: 0, count: (4 - body.count % 4) % 4)
            let length = little(UInt32(padded.count + 12))
            return little(type) + length + padded + length
        }
        var file = block(0x0A0D_0D0A, [0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0] + [UInt8](repeating: 0xFF, count: 8))
        for _ in 0..<2 { file += block(1, [252, 0, 0, 0, 0, 0, 0, 0]) }
        for (index, frame) in frames.enumerated() {
            let packet = packet(frame.frame)
            file += block(
                6,
                little(UInt32(frame.interface)) + little(0) + little(UInt32(index)) + little(UInt32(packet.count))
                    + little(UInt32(packet.count)) + packet)
        }
        return file
    }
}

/// What tshark shows of a capture with the plug-in.
struct Dissection {
    /// Fields of the frame itself by frame number.
    var fields: [Int: [ShownField]] = [:]
    /// Fields of what was put together with this frame.
    var joined: [Int: [ShownField]] = [:]
    /// Paths that are there, those without a value too.
    var paths: [Int: Set<String>] = [:]
    /// Mistakes of the plug-in that Wireshark told.
    var complaints: [String] = []
    private var places: [Int: (start: Int, count: Int, isSent: Bool, isATR: Bool, isBlock: Bool, interface: Int)] = [:]
    private let file: String

    init(_ file: String, plugin: String) async throws {
        self.file = file
        let outcome = try await ProcessRunner.run(
            "/usr/bin/env", ["tshark", "-X", "lua_script:\(plugin)", "-r", file, "-T", "pdml"])
        if outcome.errorText.contains("Lua") { complaints.append(outcome.errorText) }
        var number = 0
        var base = 0
        var isSent = false
        var depth = 0
        var isFirst = true
        var isWhole = false
        var frame = (start: 0, size: 0)
        var interface = 0
        for line in outcome.outputText.split(separator: "\n").map(String.init) {
            if line.contains("<packet>") { (number, base, isFirst, isSent, isWhole) = (number + 1, 0, true, false, false) }
            guard let name = Self.attribute("name", line) else { continue }
            if name == "frame.p2p_dir" || name == "exported_pdu.p2p_dir" { isSent = Self.attribute("show", line) == "0" }
            if name == "frame.interface_id" { interface = Self.attribute("show", line).flatMap { Int($0) } ?? 0 }
            if line.contains("Lua Error") || line.contains("Trying to fetch") { complaints.append(line) }
            if line.contains("<proto name=\"iso7816.atr\""), var place = places[number] {
                place.isATR = true
                places[number] = place
            }
            if line.contains("<proto name=\"iso7816\""), places[number] == nil {
                places[number] = (Self.number("pos", line), Self.number("size", line), isSent, false, false, interface)
            }
            if line.contains("<proto name=\"iso14443\"") { frame = (Self.number("pos", line), Self.number("size", line)) }
            // Blocks with their CRC only; frames of an activation have no grammar yet.
            if name == "iso14443.event", let show = Self.attribute("show", line), show == "0xff" || show == "0xfe" {
                isWhole = true
            }
            if name == "iso14443.block_type", isWhole, places[number] == nil, frame.size > 6 {
                places[number] = (frame.start + 4, frame.size - 4, isSent, false, true, interface)
            }
            if line.contains("<proto name=\"tapdeck\"") {
                // Only the first speaks of the frame itself; others of what was joined.
                depth = isFirst ? 0 : 1
                isFirst = false
                base = Self.number("pos", line)
            }
            if depth == 0 { paths[number, default: []].insert(String(name.dropFirst(8))) }
            guard name.hasPrefix("tapdeck."), name.split(separator: ".").count > 2,
                let show = Self.attribute("show", line)
            else { continue }
            let size = Self.number("size", line)
            let path = String(name.dropFirst(8))
            let value: String
            if show.hasPrefix("0x") {
                value = UInt64(show.dropFirst(2), radix: 16).map(String.init) ?? show
            } else if UInt64(show) != nil, !Self.isOctets(path) {
                value = show
            } else {
                value = (Self.attribute("value", line) ?? "").uppercased()
            }
            // Items without a value only group others.
            if show.isEmpty, Self.isComposite(path), size > 0 || !Self.isTag(path) { continue }
            if path.range(of: "\\.line[0-9]+$", options: .regularExpression) != nil { continue }
            let field = ShownField(path: path, start: Self.number("pos", line) - base, count: size, value: value)
            if depth == 0 { fields[number, default: []].append(field) } else { joined[number, default: []].append(field) }
        }
    }

    private static let kinds: [String: Set<NodeKind>] = {
        var kinds: [String: Set<NodeKind>] = [:]
        let program = ExportSupport.program
        for (index, node) in program.nodes.enumerated() where index > 4 {
            if node.flags.contains(.unnamed), [.composite, .choice, .alternative, .bits, .root].contains(node.kind) { continue }
            kinds[program.path(index), default: []].insert(node.flags.contains(.secret) ? .root : node.kind)
        }
        return kinds
    }()

    private static func isOctets(_ path: String) -> Bool {
        guard let kinds = kinds[path] else { return true }
        return kinds.isDisjoint(with: [.number, .bit, .bits])
    }

    private static func isTag(_ path: String) -> Bool { kinds[path]?.contains(.tag) ?? false }

    private static func isComposite(_ path: String) -> Bool {
        guard let kinds = kinds[path] else { return false }
        return kinds.isSubset(of: [.composite, .choice, .root, .tag, .alternative])
    }

    /// Whether a stock dissector took the frame for a message.
    func isMessage(_ number: Int) -> Bool { places[number] != nil }

    /// The messages that the stock dissectors found.
    func apdus() async throws -> [Capture.Frame] {
        let plain = try await ProcessRunner.run("/usr/bin/env", ["tshark", "-r", file, "-F", "pcap", "-w", "-"])
        let octets = Array(plain.output)
        var frames: [Capture.Frame] = []
        var position = 24
        var number = 0
        while position + 16 <= octets.count {
            let length = (0..<4).reduce(0) { $0 | Int(octets[position + 8 + $1]) << (8 * $1) }
            guard position + 16 + length <= octets.count else { break }
            number += 1
            if let place = places[number], place.start + place.count <= length {
                let start = position + 16 + place.start
                frames.append(
                    Capture.Frame(
                        kind: place.isATR
                            ? .atr
                            : place.isBlock ? place.isSent ? .blockCommand : .blockAnswer : place.isSent ? .command : .response,
                        octets: Array(octets[start..<start + place.count]),
                        number: number, interface: place.interface))
            }
            position += 16 + length
        }
        return frames
    }

    private static func attribute(_ name: String, _ line: String) -> String? {
        guard let range = line.range(of: " \(name)=\"") else { return nil }
        let rest = line[range.upperBound...]
        guard let end = rest.firstIndex(of: "\"") else { return nil }
        return String(rest[..<end])
    }

    private static func number(_ name: String, _ line: String) -> Int { attribute(name, line).flatMap { Int($0) } ?? 0 }
}
