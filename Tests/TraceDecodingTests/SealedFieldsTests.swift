// SPDX-License-Identifier: MIT

import GrammarLibrary
import GrammarRuntime
import Octets
import SessionSupport
import Testing
import TraceFile
import Tracing

@testable import TraceDecoding

/// Two texts say what is secret: the grammars, for those who look at fields, and the table of what is sealed, for those who write
/// traces. What a grammar calls secret stands in one of two places, and for each there is a promise:
///
/// - In a frame as it passes: a PIN, a key that is loaded, a password. The table seals its octets, all of them, in every form
///   that the command may have and in a block that carries it.
/// - In a message that only a key opens (K.IFD and K.IC), or in a file that such messages bring (the machine readable zone of
///   DG1). What passed is a cryptogram, so there is nothing to seal in the trace. What was opened exists only while somebody looks
///   at it, and there it is left out like a sealed place; of a file every piece behind its first four bytes.
///
/// A document that lets anybody read DG1 sends it in clear, and the trace keeps what passed: whose data a file holds is for
/// redaction, not for the table of passwords and keys. Its fields are left out of what is shown all the same.
@Suite struct SealedFieldsTests {
    private static let program = GrammarLibrary.standard.program

    /// A secret field that was met.
    struct Met: Hashable {
        var rule: String
        var path: String
        var octets: Range<Int>
        var isInFrame: Bool
        var isRequest: Bool
    }

    private static func rule(_ node: Node) -> String { "\(node.place.file):\(node.place.line):\(node.place.column)" }

    private static func secrets(_ decoder: Decoder, _ outcome: Decoder.Outcome) -> [Met] {
        outcome.spans.filter { decoder.isSecret($0) }.map { number in
            let span = decoder.spans[number]
            let buffer = decoder.buffers[Int(span.buffer)]
            return Met(
                rule: rule(program.nodes[Int(span.node)]), path: decoder.path(of: number),
                octets: span.start..<span.start + span.count,
                isInFrame: buffer.origin == .frame, isRequest: buffer.isRequest)
        }
    }

    /// The places of `met` that no place of the table covers.
    private static func open(_ met: [Met], _ places: SealTable.Places) -> [Met] {
        met.filter { field in
            field.isInFrame && !field.octets.isEmpty
                && !(field.isRequest ? places.command : places.answer).contains {
                    $0.lowerBound <= field.octets.lowerBound && $0.upperBound >= field.octets.upperBound
                }
        }
    }

    private static func entry(_ name: String) throws -> Int { try #require(program.entry(named: name), "\(name)") }

    // MARK: - What the examples of the grammars meet

    private static func meetAll() -> (met: Set<String>, open: [String], inFrames: Int) {
        var met: Set<String> = []
        var open: [String] = []
        var inFrames = 0
        for example in program.examples {
            var decoder = Decoder(program, secrets: Dictionary(example.givens) { first, _ in first })
            var command: (octets: [UInt8], fields: [Met]) = ([], [])
            func check(answer: [UInt8], _ fields: [Met]) {
                let places = SealTable.places(command: command.octets, answer: answer)
                open += Self.open(command.fields + fields, places).map { "\($0.path) of \(Hex.encode(command.octets))" }
                command.fields = []
            }
            for frame in example.frames {
                let exchange = example.exchange >= 0 ? program.exchanges[example.exchange] : nil
                let root = exchange.map { frame.isRequest ? $0.request : $0.response } ?? example.root
                if frame.isRequest {
                    check(answer: [], [])
                    let outcome = decoder.push(request: frame.octets, entry: root)
                    let fields = secrets(decoder, outcome)
                    met.formUnion(fields.map(\.rule))
                    // A message that is no frame: a file.
                    guard exchange != nil else { continue }
                    command = (frame.octets, fields)
                    inFrames += fields.count { $0.isInFrame }
                } else {
                    let outcome = decoder.push(response: frame.octets, entry: root)
                    let fields = secrets(decoder, outcome)
                    met.formUnion(fields.map(\.rule))
                    inFrames += fields.count { $0.isInFrame }
                    check(answer: frame.octets, fields)
                }
            }
            check(answer: [], [])
        }
        return (met, open, inFrames)
    }

    @Test func everySecretFieldOfAGrammarIsMetByAnExample() {
        let all = Set(Self.program.nodes.filter { $0.flags.contains(.secret) }.map(Self.rule))
        #expect(all.count > 30)
        #expect(all.subtracting(Self.meetAll().met).isEmpty)
    }

    @Test func everySecretFieldThatStandsInAFrameIsSealed() {
        let (_, open, inFrames) = Self.meetAll()
        #expect(inFrames >= 8)
        #expect(open.isEmpty, "\(open)")
    }

    // MARK: - Every form of a command

    /// Commands with data in all forms of ISO/IEC 7816-3 12.1.3 that have data.
    private static func forms(_ header: [UInt8], _ data: [UInt8]) -> [[UInt8]] {
        let (short, long) = (UInt8(truncatingIfNeeded: data.count), [0, UInt8(data.count >> 8), UInt8(data.count & 0xFF)])
        return [
            header + [short] + data, header + [short] + data + [0], header + long + data, header + long + data + [0, 0],
        ]
    }

    private static var commands: [[UInt8]] {
        var commands: [[UInt8]] = []
        for cla in UInt8.min...UInt8.max {
            for ins: UInt8 in [0x20, 0x24, 0x2C, 0x82] {
                commands += forms([cla, ins, 0, 1], Array(1...8))
            }
        }
        for p1: UInt8 in [0, 1] {
            for p2 in UInt8.min...UInt8.max {
                commands += forms([0xFF, 0xD6, p1, p2], Array(1...4)) + forms([0xFF, 0xD6, p1, p2], Array(1...16))
            }
        }
        let password: [UInt8] = [0x1B, 1, 2, 3, 4]
        for frame in [password, [0x30, 0x04]] {
            commands += forms([0xFF, 0, 0, 0], [0xD4, 0x42] + frame) + forms([0xFF, 0, 0, 0], [0xD4, 0x40, 1] + frame)
            for ins: UInt8 in [0xC2, 0x50] {
                for tag: UInt8 in [0x93, 0x95] {
                    commands += forms([0xFF, ins, 0, 1], [tag, UInt8(frame.count)] + frame)
                    commands += forms([0xFF, ins, 0, 1], [0x5F, 0x46, 4, 0, 0, 0, 0, tag, UInt8(frame.count)] + frame)
                }
            }
        }
        return commands
    }

    @Test func inEveryFormOfACommandWhatAGrammarCallsSecretIsSealed() throws {
        let entry = try Self.entry("iso7816.Command")
        var decoder = Decoder(Self.program)
        var found = 0
        for command in Self.commands {
            decoder.state.pending = nil
            let outcome = decoder.push(request: command, entry: entry)
            let fields = Self.secrets(decoder, outcome)
            found += fields.count
            let open = Self.open(fields, SealTable.places(command: command))
            #expect(open.isEmpty, "\(Hex.encode(command)): \(open)")
        }
        #expect(found > 3_000)
    }

    @Test func inABlockOnTheAirWhatAGrammarCallsSecretIsSealedWithTheChecksum() throws {
        let entry = try Self.entry("iso14443.Command")
        var found = 0
        for command in Self.commands where command[0] & 0xE0 == 0 {
            for head: [UInt8] in [[0x02], [0x03], [0x0A, 0x01]] {
                let frame = hex(withChecksum(Hex.encode(head + command)))
                var decoder = Decoder(Self.program)
                let outcome = decoder.push(
                    request: [0, 0xFE, UInt8(frame.count >> 8), UInt8(frame.count & 0xFF)] + frame, entry: entry)
                let fields = Self.secrets(decoder, outcome).map { field in
                    var field = field
                    field.octets = field.octets.lowerBound - 4..<field.octets.upperBound - 4
                    return field
                }
                found += fields.count
                let places = SealTable.places(frame: frame, answer: [], checksum: 2)
                let open = Self.open(fields, places)
                #expect(open.isEmpty, "\(Hex.encode(frame)): \(open)")
                guard !fields.isEmpty else { continue }
                #expect(places.command.contains { $0.contains(frame.count - 2) && $0.contains(frame.count - 1) })
            }
        }
        #expect(found > 500)
    }

    // MARK: - What a key opens

    @Test func whatOnlyAKeyOpensIsLeftOutOfWhatIsShown() async throws {
        let session = try await Session.passport()
        var decoder = TraceDecoder(interfaces: session.trace.interfaces, secrets: session.secrets)
        var sealed: Set<String> = []
        for row in session.trace.rows {
            let decoded = decoder.push(row)
            // Nor is it in a piece of the file, which no field of its own tells to be one.
            let shown = decoded.fields.compactMap { if case .octets(let octets) = $0.value { octets } else { nil } }
            for octets in shown + decoded.derived.map(\.octets) + [decoded.plain ?? []] {
                #expect(!octets.contains(Array("ERIKSSON".utf8)), "frame \(row.frame)")
            }
            for field in decoded.fields + (decoded.file?.fields ?? []) where field.isSealed && field.shape == .leaf {
                sealed.insert(field.path)
                #expect(field.value == .octets([]))
            }
        }
        for path in ["bac.ifd.kIFD", "bac.icc.kIC", "emrtd.dg1.dg1.mrz.number", "emrtd.dg1.dg1.mrz.name"] {
            #expect(sealed.contains(path), "\(path) of \(sealed.sorted())")
        }
        // What was opened is there for those who ask for it.
        var open = TraceDecoder(interfaces: session.trace.interfaces, secrets: session.secrets, showsSecrets: true)
        let plains = session.trace.rows.compactMap { open.push($0).plain }
        #expect(plains.contains { $0.contains(Array("ERIKSSON".utf8)) })
        // The trace itself holds cryptograms in their place.
        for text in ["ERIKSSON", "L898902C"] {
            let octets = Array(text.utf8)
            for row in session.trace.rows { #expect(!row.body.contains(octets), "frame \(row.frame)") }
        }
    }
}
