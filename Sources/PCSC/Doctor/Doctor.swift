// SPDX-License-Identifier: MIT

/// Judges what was found on a machine: the data behind `tapdeck doctor`.
public enum Doctor {
    /// What a check is good for, in the order of the report.
    public enum Purpose: String, Sendable, CaseIterable {
        case recordFromReader = "record from a reader"
        case recordProgram = "record a program"
        case replay = "replay, show, fuzz, redact"
        case putCard = "put a card into a reader for other programs"
        case wireshark = "look in Wireshark"
    }

    public enum Verdict: String, Sendable {
        case ok
        case fail = "FAIL"
        case warn
        case note
    }

    /// One check.
    public struct Finding: Sendable, Equatable {
        public let purpose: Purpose
        public let verdict: Verdict
        public let text: String
        /// What to type, or the fact that matters, a line each.
        public let remedy: [String]

        public init(_ purpose: Purpose, _ verdict: Verdict, _ text: String, remedy: [String] = []) {
            self.purpose = purpose
            self.verdict = verdict
            self.text = text
            self.remedy = remedy
        }
    }

    /// The report about a machine. A purpose about which nothing was looked for is absent.
    public static func report(_ facts: DoctorFacts) -> [Finding] {
        serviceFindings(facts) + usbFindings(facts) + readerFindings(facts) + folderFindings(facts) + programFindings(facts)
            + [Finding(.replay, .ok, "nothing is needed")] + virtualFindings(facts) + wiresharkFindings(facts)
    }

    /// The lines of a report: a heading for each purpose, its findings two columns in, what to type ten columns in.
    public static func lines(_ findings: [Finding]) -> [String] {
        var lines: [String] = []
        for purpose in Purpose.allCases {
            let own = findings.filter { $0.purpose == purpose }
            if own.isEmpty { continue }
            lines.append(purpose.rawValue)
            for finding in own {
                let label = finding.verdict.rawValue
                lines.append("  \(label)\(String(repeating: " ", count: 6 - label.count))\(finding.text)")
                lines += finding.remedy.map { "          \($0)" }
            }
        }
        return lines
    }

    /// The line below a report: `1 FAIL, 2 warn, 1 note`; kinds that did not occur are left out.
    public static func closingLine(_ findings: [Finding]) -> String {
        let counts = [Verdict.fail, .warn, .note].compactMap { verdict -> String? in
            let count = findings.count { $0.verdict == verdict }
            return count == 0 ? nil : "\(count) \(verdict.rawValue)"
        }
        return counts.isEmpty ? "all \(findings.count) checks held" : counts.joined(separator: ", ")
    }

    /// Whether something fails: the command then ends with status 1.
    public static func hasFailure(_ findings: [Finding]) -> Bool { findings.contains { $0.verdict == .fail } }

    // MARK: - Record from a reader

    private static func serviceFindings(_ facts: DoctorFacts) -> [Finding] {
        if facts.library == .missing {
            let missing = Finding(
                .recordFromReader, .fail, "libpcsclite.so.1 is not on this machine", remedy: ["sudo apt install libpcsclite1"]
            )
            return [missing] + serviceFinding(facts)
        }
        var findings = serviceFinding(facts)
        guard case .answers(_, let major, let minor) = facts.service else { return findings }
        switch facts.library {
        case .works, .missing: break
        case .otherProtocol:
            findings.append(
                Finding(
                    .recordFromReader, .fail, "libpcsclite does not speak pcscd's protocol, \(major):\(minor)",
                    remedy: [
                        "one of them is not this system's own: a second build, or a container", "ldconfig -p | grep libpcsclite",
                    ]
                )
            )
        case .fails(let error) where error.code == 0x8010_006A: findings.append(polkitFinding(facts))
        case .fails(let error):
            let remedy = error.remedy.isEmpty ? [] : [error.remedy]
            findings.append(Finding(.recordFromReader, .fail, "\(error.digits) \(error.name): \(error.meaning)", remedy: remedy))
        }
        return findings
    }

    private static func serviceFinding(_ facts: DoctorFacts) -> [Finding] {
        let path = facts.socketPath
        switch facts.service {
        case .answers(let milliseconds, _, _):
            let name = facts.serviceVersion.map { "pcscd \($0)" } ?? "pcscd"
            return [Finding(.recordFromReader, .ok, "\(name) answers, \(text(milliseconds)) ms")]
        case .nothingThere:
            let remedy = facts.serviceIsInstalled ? "sudo systemctl enable --now pcscd.socket" : "sudo apt install pcscd"
            return [
                Finding(.recordFromReader, .fail, "no PC/SC service: nothing answers at \(path)", remedy: [remedy])
            ]
        case .nobodyListens:
            return [
                Finding(
                    .recordFromReader, .fail, "\(path) is there and nobody listens",
                    remedy: ["a pcscd that was killed, or one in a container", "sudo systemctl restart pcscd.socket"]
                )
            ]
        case .notPermitted:
            return [Finding(.recordFromReader, .fail, "\(path) may not be opened by this user", remedy: ["ls -l \(path)"])]
        case .refusesSession: return [polkitFinding(facts)]
        case .garbled:
            return [
                Finding(
                    .recordFromReader, .fail, "what answers at \(path) is not pcscd",
                    remedy: ["sudo fuser -v \(path)", "sudo systemctl restart pcscd.socket pcscd"]
                )
            ]
        }
    }

    /// pcscd asks polkit, which by default lets in local, active sessions only: not ssh, not a service.
    private static func polkitFinding(_ facts: DoctorFacts) -> Finding {
        let isPlain =
            !facts.user.isEmpty && facts.user.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_-.".contains($0)) }
        let user = isPlain ? facts.user : "NAME"
        return Finding(
            .recordFromReader, .fail, "polkit denies access: this session is remote or a service",
            remedy: [
                "printf '%s\\n' 'polkit.addRule(function(a, s) {' \\",
                "  'if (a.id.indexOf(\"org.debian.pcsc-lite.\") == 0 &&' \\",
                "  's.user == \"\(user)\") return polkit.Result.YES; });' |",
                "  sudo tee /etc/polkit-1/rules.d/50-tapdeck.rules",
            ]
        )
    }

    private static func usbFindings(_ facts: DoctorFacts) -> [Finding] {
        facts.usbReaders.compactMap { reader in
            if let module = reader.heldBy {
                return Finding(
                    .recordFromReader, .fail, "\(reader.text) is held by the kernel module \(module)",
                    remedy: [
                        "sudo modprobe -r \(module)",
                        "echo blacklist \(module) | sudo tee /etc/modprobe.d/tapdeck.conf",
                        "sudo systemctl restart pcscd",
                    ]
                )
            }
            guard case .answers = facts.service, facts.library == .works, !facts.readers.contains(where: { !$0.isVirtual }) else {
                return nil
            }
            let remedy = facts.driverIsInstalled ? "sudo systemctl restart pcscd" : "sudo apt install libccid"
            return Finding(.recordFromReader, .fail, "\(reader.text) is plugged in and pcscd does not see it", remedy: [remedy])
        }
    }

    private static func readerFindings(_ facts: DoctorFacts) -> [Finding] {
        var findings: [Finding] = []
        for (index, reader) in facts.readers.enumerated() {
            if reader.isExclusive {
                findings.append(
                    Finding(
                        .recordFromReader, .warn, "reader \(index) is held by another program alone",
                        remedy: [reader.name, "sudo fuser -v \(facts.socketPath)"]
                    )
                )
            } else {
                findings.append(Finding(.recordFromReader, .ok, "reader \(index): \(reader.name)"))
            }
        }
        if case .answers = facts.service, facts.library == .works, facts.readers.isEmpty, facts.usbReaders.isEmpty {
            findings.append(
                Finding(.recordFromReader, .warn, "pcscd knows no reader, and USB shows none", remedy: ["lsusb"])
            )
        }
        let hasRealReader = !facts.usbReaders.isEmpty || facts.readers.contains { !$0.isVirtual }
        if facts.escapeCommands == false, hasRealReader {
            findings.append(
                Finding(
                    .recordFromReader, .note, "escape commands are off: APDUs only, no frames below them",
                    remedy: ["set ifdDriverOptions to 0x0001 in \(facts.driverSettingsPath)"]
                )
            )
        }
        return findings
    }

    private static func folderFindings(_ facts: DoctorFacts) -> [Finding] {
        guard let folder = facts.unwritableFolder else { return [] }
        return [
            Finding(
                .recordFromReader, .fail, "\(folder) cannot be written; a recording goes there",
                remedy: ["cd", "or give another place with -o"]
            )
        ]
    }

    // MARK: - The other purposes

    private static func programFindings(_ facts: DoctorFacts) -> [Finding] {
        guard case .answers(_, let major, let minor) = facts.service else {
            return [Finding(.recordProgram, .note, "nothing can be said before pcscd answers")]
        }
        guard major == 4, (4...6).contains(minor) else {
            return [Finding(.recordProgram, .fail, "pcsc-lite protocol \(major):\(minor) is not one of 4:4, 4:5, 4:6")]
        }
        return [
            Finding(.recordProgram, .ok, "pcsc-lite protocol \(major):\(minor); programs can be led here by its socket")
        ]
    }

    private static func virtualFindings(_ facts: DoctorFacts) -> [Finding] {
        let slots = facts.virtualSlots
        guard !slots.isEmpty else {
            return [Finding(.putCard, .note, "no vpcd reader", remedy: ["sudo apt install vsmartcard-vpcd"])]
        }
        let deaf = slots.filter { !$0.listens }
        guard deaf.isEmpty else {
            let ports = list(deaf.map(\.port))
            return [
                Finding(
                    .putCard, .warn, "vpcd is installed and does not listen on \(ports)", remedy: ["sudo systemctl restart pcscd"]
                )
            ]
        }
        var findings = [Finding(.putCard, .ok, "vpcd reader, \(list(slots.map(\.port)))")]
        if let open = slots.first(where: \.everyAddress) {
            findings.append(
                Finding(
                    .putCard, .warn, "vpcd listens on every address of this machine, not only on loopback",
                    remedy: ["anyone who reaches port \(open.port) can be the card"]
                )
            )
        }
        return findings
    }

    private static func wiresharkFindings(_ facts: DoctorFacts) -> [Finding] {
        switch facts.wireshark {
        case .notLookedFor: []
        case .missing: [Finding(.wireshark, .note, "tshark is not installed", remedy: ["sudo apt install tshark"])]
        case .version(let version): [Finding(.wireshark, .ok, "tshark \(version); traces open as they are")]
        }
    }

    private static func list(_ ports: [UInt16]) -> String {
        let texts = ports.map { "\($0)" }
        guard let last = texts.last, texts.count > 1 else { return "port \(texts.first ?? "")" }
        return "ports \(texts.dropLast().joined(separator: ", ")) and \(last)"
    }

    /// Whole milliseconds, but two digits below one.
    private static func text(_ milliseconds: Double) -> String {
        guard milliseconds.isFinite, milliseconds >= 0 else { return "?" }
        if milliseconds >= 1 { return "\(Int(min(milliseconds, 1e9).rounded()))" }
        let hundredths = Int((milliseconds * 100).rounded())
        return hundredths >= 100 ? "1" : "0." + (hundredths < 10 ? "0" : "") + "\(hundredths)"
    }
}

extension ReaderSurvey {
    /// What `tapdeck readers` says instead of a table when there is nothing to list: the error's first line, then facts and
    /// what to type. Empty when there are readers.
    public static func absenceLines(_ facts: DoctorFacts) -> [String] {
        guard facts.readers.isEmpty else { return [] }
        switch (facts.service, facts.library) {
        case (.answers, .works):
            guard let reader = facts.usbReaders.first else { return ["pcscd is running and knows no reader", "tapdeck doctor"] }
            guard let module = reader.heldBy else {
                return ["pcscd is running and knows no reader", "USB shows \(reader.text)", "tapdeck doctor"]
            }
            return [
                "pcscd is running and knows no reader", "USB shows \(reader.text), held by the kernel module \(module)",
                "sudo modprobe -r \(module) && sudo systemctl restart pcscd",
            ]
        default:
            guard let finding = Doctor.report(facts).first(where: { $0.verdict == .fail }) else { return [] }
            return [finding.text] + finding.remedy.prefix(3) + ["tapdeck doctor"]
        }
    }
}
