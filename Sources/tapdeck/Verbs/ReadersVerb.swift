// SPDX-License-Identifier: MIT

import Octets
import PCSC
import TagTransport
import TraceFile

/// `readers`: readers, slots, and the cards in them.
enum ReadersVerb: Verb {
    static let name = "readers"
    static let summary = "readers, slots, and the cards in them"
    static let synopsis = ["readers [--no-probe] [--json]"]
    static let options = [OptionSpec("--no-probe", .none, "never ask a card what it is")]
    static let details = [
        "A card is asked only when no other program has it. UIDs are not printed. Status 3 when there is no reader."
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        let survey: ReaderSurvey
        do {
            survey = try await ReaderSurvey.gather(probe: !arguments.has("--no-probe"))
        } catch {
            let lines = ReaderSurvey.absenceLines(try await DoctorFacts.gather())
            throw lines.isEmpty ? ReaderFailure.failure(error) : Failure(.outside, lines: lines)
        }
        guard !survey.readers.isEmpty else {
            throw Failure(.outside, lines: ReaderSurvey.absenceLines(try await DoctorFacts.gather()))
        }
        (arguments.wantsJSON ? survey.readers.map(json) : survey.lines).forEach(terminal.result)
        return .fine
    }

    private static func json(_ reader: ReaderSurvey.Entry) -> String {
        var members: [String: JSONValue] = [
            "index": .integer(Int64(reader.index)), "name": .string(reader.name), "slot": .string(reader.slot.rawValue),
            "inUse": .bool(reader.isInUse),
        ]
        if let atr = reader.atr { members["atr"] = .string(Hex.encode(atr.octets)) }
        if let card = reader.cardName { members["card"] = .string(card) }
        return JSONValue.object(members).text
    }
}
