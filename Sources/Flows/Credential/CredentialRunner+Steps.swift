// SPDX-License-Identifier: MIT

import CardSockets
import FoundationEssentials
import Octets
import SecureElementCredential
import Synchronization

extension CredentialRunner {
    /// Makes the step's call.
    ///
    /// - Returns: what it came to, as the script writes it.
    func perform(_ line: Line) async throws -> String? {
        willPerform(line)
        switch line.verb {
        case "startSession": session = try await CredentialSession.startSession()
        case "isEligible": return "\(try await CredentialSession.isEligible)"
        case "invalidate": try await session.invalidate()
        case "secureElementInfo": return try await session.secureElementInfo.hardwareReleaseVersionInfo
        case "listCredentials": return try await list()
        case "provisionCredential": return try await provision(line)
        case "deleteCredential": try await session.deleteCredential(try credential(line.words[0], line))
        case "enterWiredMode": try await session.enterWiredMode(using: try credential(line.words[0], line))
        case "transceive":
            return Hex.encode(try await session.transceive(Data(try octets(line.words[0], line))))
        case "endWiredMode": try await session.endWiredMode()
        case "endCardEmulation": try await session.endCardEmulation()
        case "acquirePresentmentAssertion":
            assertions.append(try await session.acquirePresentmentAssertion())
            return "A\(assertions.count)"
        case "relinquish": try await relinquish(line)
        case "securityDomainCounter":
            guard let instance = try credential(line.words[0], line).instances.first else { return nil }
            return "\(try await instance.securityDomainCounter)"
        case "invalidateConfiguration": try await session.configuration().invalidate()
        case "state": return await session.state.name
        case "event": return event(line.words.first?.text)
        default: return try await performOther(line)
        }
        return nil
    }

    private func performOther(_ line: Line) async throws -> String? {
        switch line.verb {
        case "performTransaction":
            try await session.performTransaction(using: try credential(line.words[0], line), over: scene)
        case "performCardEmulationTransactionWithCurrentCredential":
            try await session.performCardEmulationTransactionWithCurrentCredential(over: scene)
        case "performWiredTransaction", "performTransactionInWiredMode": try await wiredTransaction(line)
        case "wait": try await wait(try seconds(line))
        case "foreground": await device.enterForeground()
        case "background": await device.enterBackground()
        case "person":
            person.will(
                try choice(line, [("allow", .allow), ("decline", .decline), ("dismiss", .dismiss), ("timeOut", .timeOut)]))
        case "scene": scene.isValid = try choice(line, [("valid", true), ("invalid", false)])
        case "network": device.policy.isOnline = try choice(line, [("on", true), ("off", false)])
        case "field":
            let isPresent = try choice(line, [("on", true), ("off", false)])
            if let card = reader.card {
                await card.field(isPresent: isPresent)
            } else {
                await device.readerField(isPresent: isPresent)
            }
        case "tap": return try await tap(line)
        case "reader": return try await letReaderWork(line)
        default: break
        }
        return nil
    }

    private func list() async throws -> String {
        let list = try await session.listCredentials()
        // The order of the list is random; the labels are not.
        for credential in list.sorted(by: { ($0.name, $0.identifier.uuidString) < ($1.name, $1.identifier.uuidString) }) {
            _ = label(of: credential)
        }
        return "\(list.count)"
    }

    private func provision(_ line: Line) async throws -> String {
        let word = line.words[0]
        let configuration = configurations.first { $0.name == word.text }?.identifier ?? UUID(uuidString: word.text)
        guard let configuration else {
            let known = configurations.map(\.name).sorted().joined(separator: ", ")
            throw CredentialScriptError(
                .argument, line: line.number, column: word.column, "no configuration \(word.text); there are \(known), or a UUID")
        }
        return label(of: try await session.provisionCredential(configurationUUID: configuration, name: line.words[1].text))
    }

    private func relinquish(_ line: Line) async throws {
        let text = line.words.first?.text ?? "A\(assertions.count)"
        guard text.hasPrefix("A"), let number = Int(text.dropFirst()), number > 0, number <= assertions.count else {
            throw CredentialScriptError(
                .argument, line: line.number, column: line.words.first?.column ?? line.column, "no assertion \(text) yet")
        }
        try await assertions[number - 1].relinquish()
    }

    private func wiredTransaction(_ line: Line) async throws {
        let credential = try credential(line.words[0], line)
        let instance =
            line.words.count > 1 ? Data(try octets(line.words[1], line)) : credential.instances.first?.instanceAID ?? Data()
        if line.verb == "performWiredTransaction" {
            try await session.performWiredTransaction(using: credential, over: scene, instanceAID: instance)
            return
        }
        try await session.transactionInWiredMode(using: credential, over: scene, instanceAID: instance)
    }

    /// The next event of the stream that no step has read, or the next one of that name, past others.
    private func event(_ name: String?) -> String {
        observer.seen.withLock { seen in
            let unread = seen.events[min(seen.read, seen.events.count)...]
            guard let place = unread.firstIndex(where: { name == nil || $0.name == name }) else { return "none" }
            seen.read = place + 1
            return seen.events[place].name
        }
    }

    private func tap(_ line: Line) async throws -> String {
        let command = try octets(line.words[0], line)
        guard let card = reader.card else { return "none" }
        switch await card.command(command) {
        case .response(let octets): return Hex.encode(octets)
        case .silence, .removed: return "none"
        }
    }

    private func letReaderWork(_ line: Line) async throws -> String {
        let seconds = Int(try seconds(line))
        let step = readerSteps
        readerSteps += 1
        let before = observer.seen.withLock { $0.contactless.count }
        let call = observer.began("reader(seconds:)", [CredentialArgument("seconds", .number(seconds))])
        if let card = reader.card { await world.reader?(card, seconds, step) }
        observer.ended(call, .success([]))
        let count = observer.seen.withLock { $0.contactless.count } - before
        return "\(count)"
    }
}
