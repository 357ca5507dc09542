// SPDX-License-Identifier: MIT

import Octets
public import TagTransport

/// Sends the commands of an ``APDUScript`` and checks the answers that it names.
public enum APDUFlow: Flow {
    public struct Arguments: Codable, Sendable, Equatable {
        /// The script's text.
        public var script: String

        public init(script: String) { self.script = script }
    }

    public struct Outcome: Codable, Sendable, Equatable {
        /// Each answer, status word included, in hexadecimal, in the order of the commands.
        public let answers: [String]
    }

    public static let name = "apdu"
    public static let function = "apdu(transport:script:)"

    /// Which commands beside those of ISO/IEC 7816-4 make a script secret: set by whoever keeps the table of secrets.
    @TaskLocal package static var secretCommands: SecretCommands?

    /// A structure around the function: a bare function as a task-local value crashes in optimised builds of Swift 6.3.
    package struct SecretCommands: Sendable {
        let contains: @Sendable ([UInt8]) -> Bool

        package init(_ contains: @escaping @Sendable ([UInt8]) -> Bool) { self.contains = contains }
    }

    /// The script is sealed when one of its commands is, and when it cannot be read.
    public static func secretArguments(of arguments: Arguments) -> Set<String> {
        guard let script = try? APDUScript(arguments.script) else { return ["script"] }
        let isSecret = script.commands.contains { holdsReferenceData($0) || secretCommands?.contains($0.octets) == true }
        return isSecret ? ["script"] : []
    }

    /// - Throws: ``APDUScriptError``, or what the transport throws.
    public static func run(
        _ arguments: Arguments, over transport: any NFCTagTransport, progress: @escaping @Sendable (String) -> Void
    ) async throws -> Outcome {
        let script = try APDUScript(arguments.script)
        var answers: [String] = []
        var last: [UInt8] = []
        for line in script.lines {
            try Task.checkCancellation()
            switch line.step {
            case .command(let command):
                last = try await transport.sendAPDU(command).octets
                answers.append(Hex.encode(last))
                // Header and lengths only: data fields may hold a PIN.
                let header = Hex.encode(command.octets.prefix(4))
                let data = last.count > 2 ? "\(last.count - 2) bytes, " : ""
                progress("line \(line.number)  \(header)  \(data)\(Hex.encode(last.suffix(2)))")
            case .expect(let pattern):
                guard pattern.matches(last) else {
                    throw APDUScriptError(mismatch: pattern, actual: last, line: line.number, column: line.column)
                }
            case .reset:
                _ = try await connection(transport, "!reset").resetCard()
                progress("line \(line.number)  reset")
            case .remove:
                try await connection(transport, "!remove").removeCard()
                progress("line \(line.number)  removed")
            case .wait(let milliseconds):
                try await FlowClock.sleep(milliseconds)
            }
        }
        return Outcome(answers: answers)
    }

    private static func connection(_ transport: any NFCTagTransport, _ step: String) throws -> any CardConnection {
        guard let connection = transport as? any CardConnection else { throw TransportError.unsupported(step) }
        return connection
    }

    /// VERIFY, CHANGE REFERENCE DATA, RESET RETRY COUNTER (ISO/IEC 7816-4 11.6), and LOAD KEYS of PC/SC part 3.
    private static func holdsReferenceData(_ command: CommandAPDU) -> Bool {
        command.cla == 0xFF ? command.ins == 0x82 : [0x20, 0x21, 0x24, 0x25, 0x2C, 0x2D].contains(command.ins)
    }
}
