// SPDX-License-Identifier: MIT

import Glibc
import Octets
import PCSC
import TagTransport
import VirtualCards

/// Where a flow's card comes from: a virtual card in this process, or a reader.
enum CardSource {
    /// The transport that `--card` or `--reader` names; without either, the one reader that there is.
    ///
    /// - Parameter wait: seconds to wait for a card in the reader.
    static func open(_ arguments: Arguments, _ terminal: Terminal) async throws -> any NFCTagTransport {
        if let card = arguments.value("--card") {
            guard arguments.value("--reader") == nil else { throw Failure.usage("--card and --reader exclude each other") }
            guard card.hasPrefix("virtual:") else {
                throw Failure.usage("--card takes virtual:KIND, not \(card)", "tapdeck record --card virtual:passport ...")
            }
            do {
                let specification = try VirtualCardSpecification(reference: card)
                return VirtualCardTransport(try VirtualCardCatalog.make(specification))
            } catch {
                throw CardSource.failure(error)
            }
        }
        return try await reader(arguments, terminal)
    }

    /// What is wrong with a virtual card: mistyped, or its file of options cannot be read.
    static func failure(_ error: VirtualCardError) -> Failure {
        Failure(error.code == .unreadableFile ? .outside : .wrongUsage, lines: TextWrap.sentence(error.description))
    }

    private static func reader(_ arguments: Arguments, _ terminal: Terminal) async throws -> any NFCTagTransport {
        try await reader(arguments, terminal) { context, name in try await PCSCTransport.connect(context, to: name) }
    }

    /// A transport to the reader that `--reader` names, once a card is in it.
    static func reader(
        _ arguments: Arguments, _ terminal: Terminal,
        _ connect: (_ context: PCSCContext, _ name: String) async throws -> any NFCTagTransport
    ) async throws -> any NFCTagTransport {
        do {
            let context = try await PCSCContext.open()
            let name = try chosen(arguments.value("--reader"), among: try await context.readerStatuses(), arguments)
            try await waitForCard(in: name, context, arguments, terminal)
            return try await connect(context, name)
        } catch let error as TransportError {
            throw ReaderFailure.failure(error)
        }
    }

    private static func chosen(_ wanted: String?, among statuses: [ReaderStatus], _ arguments: Arguments) throws -> String {
        guard !statuses.isEmpty else { throw Failure(.outside, "pcscd is running and knows no reader", "tapdeck doctor") }
        let choice = ReaderChoice(wanted, among: statuses)
        if case .reader(let name) = choice { return name }
        let command = (["tapdeck record"] + arguments.operands.prefix(1)).joined(separator: " ")
        let lines = choice.lines(wanted: wanted ?? "", among: statuses.map(\.reader), command: command)
        // Two readers that fit are a matter of typing; none that fits is not there.
        if case .several = choice { throw Failure(.wrongUsage, lines: lines) }
        throw Failure(.outside, lines: lines)
    }

    private static func waitForCard(in name: String, _ context: PCSCContext, _ arguments: Arguments, _ terminal: Terminal)
        async throws
    {
        let seconds = try seconds(arguments.value("--wait")) ?? (terminal.canAsk ? 60 : 0)
        let deadline = ContinuousClock.now + .seconds(seconds)
        var isTold = false
        while true {
            let statuses = try await context.readerStatuses()
            guard let status = statuses.first(where: { $0.reader == name }) else {
                throw Failure(.outside, "the reader \(name) is gone")
            }
            if status.hasCard { return }
            guard ContinuousClock.now < deadline else {
                throw Failure(.outside, "no card in \(name)", "put a card on the reader; --wait 60 waits a minute for it")
            }
            if !isTold {
                terminal.note("card     put it on the reader and leave it there (\(seconds) s)")
                isTold = true
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    private static func seconds(_ text: String?) throws -> Int? {
        guard let text else { return nil }
        guard let seconds = Int(text), (0...86_400).contains(seconds) else {
            throw Failure.usage("--wait takes seconds, not \(text)")
        }
        return seconds
    }
}

/// What an error of the reader's side means for people.
enum ReaderFailure {
    static func failure(_ error: TransportError) -> Failure {
        switch error.case {
        case .serviceUnavailable:
            let socket = getenv("PCSCLITE_CSOCK_NAME").map { String(cString: $0) } ?? "/run/pcscd/pcscd.comm"
            if error.detail.contains("libpcsclite") {
                return Failure(.outside, "no PC/SC library: \(error.detail)", "sudo apt install pcscd", "tapdeck doctor")
            }
            return Failure(.outside, "no PC/SC service: nothing answers at \(socket)", "sudo apt install pcscd", "tapdeck doctor")
        case .sharingViolation:
            return Failure(
                .outside, "outside: another program holds the card for itself", error.detail, "end that program, or wait for it")
        case .tagConnectionLost:
            return Failure(.outside, "outside: the card was removed", error.detail)
        case .unsupportedOperation, .readersForbidden:
            return Failure(.wrongUsage, error.description)
        default:
            return Failure(.outside, "reader: \(error.detail.isEmpty ? error.case.rawValue : error.detail)")
        }
    }
}
