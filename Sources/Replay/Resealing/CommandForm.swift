// SPDX-License-Identifier: MIT

import FoundationEssentials
import GrammarRuntime
import Octets
import TagTransport
import TraceDecoding

/// A command as mode `resealed` sees it: opened, with what either side draws left out.
struct CommandForm: Sendable {
    /// What is compared: a command APDU. Random values and what is made from them are zeros, or absent where their length may vary.
    var compared: [UInt8]
    /// The same with everything in it.
    var plain: [UInt8]
    /// Whether a channel opened it.
    var isOpened = false
    /// Why it is not what the channel's keys make of it.
    var failure: (text: String, path: String)?
    /// Whether it is under the keys of a channel, opened or not.
    private(set) var isProtected = false
    /// The exchange by the grammars: `pace.PACE_MAP`.
    var name = ""
    /// The opened message's place among the decoder's buffers.
    private var buffer = -1
    /// Whether the opened message is a native one, that was put into class 90 to be compared.
    private(set) var isNative = false

    /// - Parameter decoder: that has just read the command.
    init(_ decoder: Decoder, _ outcome: Decoder.Outcome, frame: [UInt8], index: GrammarIndex) {
        plain = frame
        if let number = outcome.exchange, let exchange = decoder.exchangeName(number) {
            name = "\(exchange.grammar).\(exchange.name)"
        }
        if let found = outcome.buffers.dropFirst().last(where: { decoder.buffers[$0].origin == .plain }) {
            buffer = found
            isOpened = true
            plain = decoder.octets(ofBuffer: found)
            if frame.first == 0x90, !plain.isEmpty {
                isNative = true
                plain = Self.wrapped(plain)
            }
        }
        let failed = decoder.annotations[outcome.annotations].first { annotation in
            annotation.severity == .error && (annotation.code == .failed || annotation.code == .unopened)
        }
        if let failed {
            let slot = failed.check >= 0 ? decoder.program.checks[Int(failed.check)].slot : -1
            let node = slot >= 0 ? decoder.program.slotNodes[slot].first : nil
            let path = node.map { decoder.program.path($0) } ?? (failed.span >= 0 ? decoder.path(of: Int(failed.span)) : "")
            failure = (decoder.text(of: failed), path)
        }
        compared = plain
        isProtected = isOpened || Self.isProtected(frame, decoder, name)
        guard isOpened || !isProtected else {
            // A part of a message that only the last part opens, or one without its keys.
            compared = Self.masked(plain, from: Self.clearLength(frame))
            return
        }
        compared = Self.masked(plain, of: name)
    }

    /// The path of the first field in which two commands differ, where it lies in what was opened.
    func path(at place: Int, in decoder: Decoder) -> String? {
        var place = place
        if isNative {
            // 90 code 00 00 Lc parameters 00, of code and parameters.
            guard place == 1 || place >= 5 else { return nil }
            place = place == 1 ? 0 : place - 4
        }
        let wanted = isOpened ? buffer : decoder.buffers.indices.lowerBound
        var best: (bits: UInt32, span: Int)?
        for (number, span) in decoder.spans.enumerated() where Int(span.buffer) == wanted && span.bitCount > 0 {
            let bit = UInt32(truncatingIfNeeded: place * 8)
            guard span.startBit < bit &+ 8, span.startBit &+ span.bitCount > bit else { continue }
            if best.map({ span.bitCount <= $0.bits }) ?? true { best = (span.bitCount, number) }
        }
        return best.map { decoder.path(of: $0.span) }
    }

    // MARK: - What is left out

    /// A native command of DESFire in class 90.
    private static func wrapped(_ call: [UInt8]) -> [UInt8] {
        let parameters = call.dropFirst()
        let head: [UInt8] = [0x90, call[0], 0x00, 0x00]
        if parameters.isEmpty { return head + [0x00] }
        if parameters.count < 256 { return head + [UInt8(parameters.count)] + parameters + [0x00] }
        let length = UInt16(truncatingIfNeeded: parameters.count)
        return head + [0x00, UInt8(length >> 8), UInt8(length & 0xFF)] + parameters + [0x00, 0x00]
    }

    /// Whether a command that was not opened is under the keys of a channel all the same.
    private static func isProtected(_ frame: [UInt8], _ decoder: Decoder, _ name: String) -> Bool {
        guard frame.count > 5 else { return false }
        switch frame[0] {
        case 0x0C, 0x1C, 0x84, 0x94: return name != "globalPlatform.GP_EXTERNAL_AUTHENTICATE"
        case 0x90:
            guard ["D40", "EV1", "EV2"].contains(where: { decoder.hasLayer($0) }) else { return false }
            return frame[1] == 0xAF && name != "desfire.AUTHENTICATE_PART_2"
                || [0x3D, 0x8D, 0x3B, 0x8B, 0xDB, 0xBA].contains(frame[1])
        default: return false
        }
    }

    /// Octets at the front that no channel hides: the header, and for writes of DESFire file, offset and length.
    private static func clearLength(_ frame: [UInt8]) -> Int {
        switch (frame[0], frame[1]) {
        case (0x90, 0xDB), (0x90, 0xBA): 5 + 10
        case (0x90, 0x3D), (0x90, 0x8D), (0x90, 0x3B), (0x90, 0x8B): 5 + 7
        default: 5
        }
    }

    private static func masked(_ octets: [UInt8], from start: Int) -> [UInt8] {
        guard octets.count > start else { return octets }
        return octets[..<start] + [UInt8](repeating: 0, count: octets.count - start)
    }

    /// Leaves out what the exchange of this name draws at random or makes from what was drawn.
    private static func masked(_ octets: [UInt8], of name: String) -> [UInt8] {
        switch name {
        case "bac.BAC", "terminalAuthentication.TA_PROVE", "activeAuthentication.AA", "desfire.AUTHENTICATE_PART_2",
            "globalPlatform.GP_INITIALIZE_UPDATE", "globalPlatform.GP_EXTERNAL_AUTHENTICATE":
            return replacing(octets) { [UInt8](repeating: 0, count: $0.count) }
        case "pace.PACE_MAP", "pace.PACE_AGREE", "pace.PACE_TOKEN", "chipAuthentication.CA_AGREE":
            return replacing(octets) { data in
                guard let outer = try? TLV.first(in: data[...]), outer.tag == 0x7C, let objects = try? outer.children() else {
                    return data
                }
                return TLV.encode(0x7C, objects.flatMap { TLV.encode($0.tag, []) })
            }
        case "chipAuthentication.CA_SET_KAT", "terminalAuthentication.TA_SELECT":
            return replacing(octets) { data in
                guard let objects = try? TLV.parse(data) else { return data }
                return objects.flatMap { TLV.encode($0.tag, $0.tag == 0x91 ? [] : Array($0.value)) }
            }
        default: return octets
        }
    }

    private static func replacing(_ octets: [UInt8], _ change: ([UInt8]) -> [UInt8]) -> [UInt8] {
        guard let command = try? CommandAPDU(bytes: octets), let data = command.data else { return octets }
        let changed = change(Array(data))
        guard
            let result = try? CommandAPDU(
                cla: command.cla, ins: command.ins, p1: command.p1, p2: command.p2, data: Data(changed), ne: command.ne,
                form: command.form)
        else { return octets }
        return result.octets
    }

    /// The data field of the plain command.
    var data: [UInt8] { (try? CommandAPDU(bytes: plain))?.data.map { Array($0) } ?? [] }
}

extension Decoder {
    /// Whether the layer `name` of the grammars is open and its keys are known.
    func hasLayer(_ name: String) -> Bool {
        guard let layer = program.layers.firstIndex(where: { $0.name == name }) else { return false }
        return state.layers.contains(layer)
    }

    /// What the layer `layer` remembers under `name`.
    func octets(_ name: String, of layer: String) -> [UInt8]? {
        guard let info = program.layers.first(where: { $0.name == layer }) else { return nil }
        for parameter in info.parameters where program.strings[program.variables[parameter].name] == name {
            if case .octets(let octets) = state.variables[parameter].value { return octets }
        }
        return nil
    }

    /// The secret that a session of `grammar` works with: what was given, or what followed from it.
    func secret(_ name: String, of grammar: String) -> [UInt8]? {
        for (number, variable) in program.variables.enumerated()
        where variable.isGiven && program.strings[variable.name] == name && program.strings[variable.grammar] == grammar {
            if case .octets(let octets) = state.variables[number].value, !octets.isEmpty { return octets }
        }
        return nil
    }

    /// The octets of a field of the exchange that was read last.
    func field(_ path: String, in entry: String) -> [UInt8]? {
        guard let root = program.entry(named: entry), let slot = program.slot(path, in: root) else { return nil }
        let span = Int(machine.slots[slot])
        return spans.indices.contains(span) ? octets(of: span) : nil
    }
}
