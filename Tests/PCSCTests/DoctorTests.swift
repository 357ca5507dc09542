// SPDX-License-Identifier: MIT

import PCSC
import Testing

@Suite struct DoctorTests {
    /// A machine on which all is well and a contactless reader is plugged in.
    private var sound: DoctorFacts {
        var facts = DoctorFacts()
        facts.service = .answers(milliseconds: 3.2, major: 4, minor: 4)
        facts.library = .works
        facts.serviceIsInstalled = true
        facts.serviceVersion = "1.9.9"
        facts.driverIsInstalled = true
        facts.escapeCommands = true
        facts.readers = [.init(name: "ACS ACR122U PICC Interface 00 00")]
        facts.usbReaders = [.init(vendor: 0x072F, product: 0x2200, name: "ACR122U")]
        facts.virtualSlots = [
            .init(port: 35_963, listens: true, everyAddress: false), .init(port: 35_964, listens: true, everyAddress: false),
        ]
        return facts
    }

    private func finding(_ facts: DoctorFacts, _ verdict: Doctor.Verdict) -> [String] {
        Doctor.report(facts).filter { $0.verdict == verdict }.map(\.text)
    }

    @Test func aReaderHeldByTheKernelIsFoundWithTheLinesThatFreeIt() {
        var facts = sound
        facts.readers = []
        facts.usbReaders[0].heldBy = "pn533_usb"
        facts.escapeCommands = false
        facts.virtualSlots[0].everyAddress = true
        let findings = Doctor.report(facts)
        #expect(
            Doctor.lines(findings) == [
                "record from a reader",
                "  ok    pcscd 1.9.9 answers, 3 ms",
                "  FAIL  072F:2200 ACR122U is held by the kernel module pn533_usb",
                "          sudo modprobe -r pn533_usb",
                "          echo blacklist pn533_usb | sudo tee /etc/modprobe.d/tapdeck.conf",
                "          sudo systemctl restart pcscd",
                "  note  escape commands are off: APDUs only, no frames below them",
                "          set ifdDriverOptions to 0x0001 in /etc/libccid_Info.plist",
                "record a program",
                "  ok    pcsc-lite protocol 4:4; programs can be led here by its socket",
                "replay, show, fuzz, redact",
                "  ok    nothing is needed",
                "put a card into a reader for other programs",
                "  ok    vpcd reader, ports 35963 and 35964",
                "  warn  vpcd listens on every address of this machine, not only on loopback",
                "          anyone who reaches port 35963 can be the card",
            ]
        )
        #expect(Doctor.closingLine(findings) == "1 FAIL, 1 warn, 1 note")
        #expect(Doctor.hasFailure(findings))
        #expect(
            ReaderSurvey.absenceLines(facts) == [
                "pcscd is running and knows no reader", "USB shows 072F:2200 ACR122U, held by the kernel module pn533_usb",
                "sudo modprobe -r pn533_usb && sudo systemctl restart pcscd",
            ]
        )
    }

    @Test func aSoundMachineHasNothingToMend() {
        let findings = Doctor.report(sound)
        #expect(findings.allSatisfy { $0.verdict == .ok })
        #expect(Doctor.closingLine(findings) == "all 5 checks held")
        #expect(ReaderSurvey.absenceLines(sound).isEmpty)
    }

    @Test func aMissingServiceIsNamedWithItsPackage() {
        var facts = DoctorFacts()
        facts.library = .fails(PCSCError(code: 0x8010_001D))
        #expect(
            ReaderSurvey.absenceLines(facts) == [
                "no PC/SC service: nothing answers at /run/pcscd/pcscd.comm", "sudo apt install pcscd", "tapdeck doctor",
            ]
        )
        facts.serviceIsInstalled = true
        #expect(ReaderSurvey.absenceLines(facts)[1] == "sudo systemctl enable --now pcscd.socket")
        facts.library = .missing
        #expect(finding(facts, .fail).first == "libpcsclite.so.1 is not on this machine")
    }

    // NixOS/nixpkgs#290926, YubiKey-Guide#376: a remote session; pcscd closes the connection before its first answer.
    @Test func aDenialByPolkitHasTheRuleToWrite() {
        for denied in [DoctorFacts.Service.refusesSession, .answers(milliseconds: 1, major: 4, minor: 4)] {
            var facts = sound
            facts.service = denied
            facts.library = .fails(PCSCError(code: 0x8010_006A))
            facts.user = "anna"
            let finding = Doctor.report(facts).first { $0.verdict == .fail }
            #expect(finding?.text == "polkit denies access: this session is remote or a service")
            #expect(finding?.remedy.contains { $0.contains("s.user == \"anna\"") } == true)
            facts.user = "anna\"); evil("
            #expect(Doctor.report(facts).first { $0.verdict == .fail }?.remedy.contains { $0.contains("evil") } == false)
        }
    }

    @Test func everyOtherCaseIsToldApart() {
        var facts = sound
        facts.library = .otherProtocol
        facts.service = .answers(milliseconds: 0.04, major: 4, minor: 5)
        #expect(finding(facts, .fail) == ["libpcsclite does not speak pcscd's protocol, 4:5"])
        #expect(finding(facts, .ok).first == "pcscd 1.9.9 answers, 0.04 ms")
        facts = sound
        facts.service = .nobodyListens
        #expect(finding(facts, .fail) == ["/run/pcscd/pcscd.comm is there and nobody listens"])
        #expect(finding(facts, .note) == ["nothing can be said before pcscd answers"])
        facts.service = .notPermitted
        #expect(finding(facts, .fail) == ["/run/pcscd/pcscd.comm may not be opened by this user"])
        facts.service = .garbled
        #expect(finding(facts, .fail) == ["what answers at /run/pcscd/pcscd.comm is not pcscd"])
        facts = sound
        facts.readers = []
        #expect(finding(facts, .fail) == ["072F:2200 ACR122U is plugged in and pcscd does not see it"])
        facts.usbReaders = []
        #expect(finding(facts, .warn) == ["pcscd knows no reader, and USB shows none"])
        facts = sound
        facts.readers[0].isExclusive = true
        #expect(finding(facts, .warn) == ["reader 0 is held by another program alone"])
        facts = sound
        facts.unwritableFolder = "/"
        #expect(finding(facts, .fail) == ["/ cannot be written; a recording goes there"])
        facts = sound
        facts.service = .answers(milliseconds: 1, major: 4, minor: 7)
        #expect(finding(facts, .fail) == ["pcsc-lite protocol 4:7 is not one of 4:4, 4:5, 4:6"])
        facts = sound
        facts.virtualSlots[1].listens = false
        #expect(finding(facts, .warn) == ["vpcd is installed and does not listen on port 35964"])
        facts.virtualSlots = []
        facts.wireshark = .version("4.0.17")
        #expect(finding(facts, .note) == ["no vpcd reader"])
        #expect(
            Doctor.lines(Doctor.report(facts)).suffix(2) == [
                "look in Wireshark", "  ok    tshark 4.0.17; traces open as they are",
            ])
    }

    @Test func noLineIsOver80ColumnsWideOfItsOwnAccord() {
        var facts = sound
        facts.library = .fails(PCSCError(code: 0x8010_006A))
        facts.user = "anna"
        for line in Doctor.lines(Doctor.report(facts)) { #expect(line.count <= 80, "\(line)") }
    }
}
