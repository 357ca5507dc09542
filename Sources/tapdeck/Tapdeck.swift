// SPDX-License-Identifier: MIT

import Glibc
import Tracing

@main
enum Tapdeck {
    static func main() async {
        // A reader of our output that goes away must not end a recording half way.
        signal(SIGPIPE, SIG_IGN)
        Interruption.watch()
        exit(await run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }

    @concurrent
    static func run(_ words: [String]) async -> ExitStatus {
        var terminal = Terminal()
        do {
            guard let first = words.first else {
                HelpText.overview().forEach(terminal.note)
                return .wrongUsage
            }
            switch first {
            case "--version":
                terminal.result(Recording.application)
                return .fine
            case "--help", "-h", "help":
                if words.count > 1, let verb = HelpText.verbs.first(where: { $0.name == words[1] }) {
                    HelpText.text(for: verb).forEach(terminal.result)
                } else {
                    HelpText.overview().forEach(terminal.result)
                }
                return .fine
            default: break
            }
            guard let verb = HelpText.verbs.first(where: { $0.name == first }) else {
                let hint = Nearest.suggestion(for: first, among: HelpText.verbs.map { $0.name })
                throw Failure.usage("unknown command \(first)\(hint)", "tapdeck --help lists them")
            }
            let rest = Array(words.dropFirst())
            if rest.first == "-h" || rest.prefix(while: { $0 != "--" }).contains("--help") {
                HelpText.text(for: verb).forEach(terminal.result)
                return .fine
            }
            terminal.isQuiet = rest.prefix { $0 != "--" }.contains("--quiet")
            return try await verb.run(words: rest, terminal)
        } catch let failure as Failure {
            terminal.error(failure.lines)
            return failure.status
        } catch {
            terminal.error(["\(error)"])
            return .outside
        }
    }
}
