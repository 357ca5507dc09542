// SPDX-License-Identifier: MIT

import PCSC
import TraceFile

/// `doctor`: what stands between this machine and a working reader.
enum DoctorVerb: Verb {
    static let name = "doctor"
    static let summary = "what stands between this machine and a working reader, and the line that mends it"
    static let synopsis = ["doctor [--json]"]
    static let options: [OptionSpec] = []
    static let details = ["Status 1 when a line says FAIL."]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        let findings = Doctor.report(try await DoctorFacts.gather())
        if arguments.wantsJSON {
            for finding in findings { terminal.result(json(finding)) }
        } else {
            Doctor.lines(findings).forEach(terminal.result)
            terminal.note(Doctor.closingLine(findings))
        }
        return Doctor.hasFailure(findings) ? .notSo : .fine
    }

    private static func json(_ finding: Doctor.Finding) -> String {
        JSONValue.object([
            "purpose": .string(finding.purpose.rawValue), "verdict": .string(finding.verdict.rawValue),
            "text": .string(finding.text), "remedy": .array(finding.remedy.map { .string($0) }),
        ]).text
    }
}
