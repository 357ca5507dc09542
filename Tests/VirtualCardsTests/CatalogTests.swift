// SPDX-License-Identifier: MIT

import Octets
import Testing
import VirtualCards

@Suite struct CatalogTests {
    @Test func bothSpellingsMeanTheSame() throws {
        let arguments = try VirtualCardSpecification(
            kind: "filesystem", arguments: ["--seed", "7", "--fault=remove@12,6C@3", "--pin", "99&%99"])
        let reference = try VirtualCardSpecification(reference: "virtual:filesystem?seed=7&fault=remove%4012,6C@3&pin=99%26%2599")
        #expect(arguments == reference)
        #expect(reference.reference == "virtual:filesystem?fault=remove%4012,6C%403&pin=99%26%2599&seed=7")
        #expect(try VirtualCardSpecification(reference: reference.reference) == reference)
    }

    @Test func aReferenceNeedsNoOptions() throws {
        #expect(try VirtualCardSpecification(reference: "filesystem").reference == "virtual:filesystem")
        #expect(try VirtualCardSpecification(reference: "virtual:filesystem?").options.values.isEmpty)
    }

    @Test(arguments: [
        ("virtual:filesytem", VirtualCardError.Code.unknownKind, "no virtual card 'filesytem'; did you mean filesystem"),
        ("virtual:filesystem?sed=7", .unknownOption, "unknown option --sed of the filesystem card; did you mean --seed"),
        ("virtual:filesystem?reader=7", .unknownOption, "unknown option --reader of the filesystem card"),
        ("virtual:filesystem?seed=7&seed=7", .repeatedOption, "--seed is given twice"),
        ("virtual:filesystem?seed", .missingValue, "--seed needs a value: N"),
        ("virtual:filesystem?fault=a%4", .badEscape, "'a%4': % wants two hexadecimal digits after it"),
        ("virtual:filesystem?fault=%FF", .badEscape, "'%FF' does not spell UTF-8"),
        ("virtual:filesystem?seed=7&&pin=1", .unknownOption, "unknown option -- of the filesystem card"),
        ("virtual:filesystem?seed=x", .badValue, "--seed takes a whole number, not 'x'"),
        ("virtual:filesystem?pin=123", .badValue, "--pin has 4 to 8 characters, not 3"),
        (
            "virtual:filesystem?fault=gone@1", .badFault,
            "fault: column 1: 'gone' is no fault; known are remove, mute, reset, short, flip, 6C, 61 and status words such as 6A82"
        ),
    ])
    func whatCannotBeMadeIsNamed(reference: String, code: VirtualCardError.Code, text: String) {
        let error = #expect(throws: VirtualCardError.self) {
            try VirtualCardCatalog.make(VirtualCardSpecification(reference: reference))
        }
        #expect(error?.code == code)
        #expect(error?.description == text)
    }

    @Test func theColumnOfABadOptionIsInTheReference() {
        let error = #expect(throws: VirtualCardError.self) {
            try VirtualCardSpecification(reference: "virtual:filesystem?seed=7&sed=8")
        }
        #expect(error?.column == 27)
    }

    @Test func anArgumentThatIsNoOptionIsRefused() {
        #expect(throws: VirtualCardError(.strayArgument, "")) {
            try VirtualCardSpecification(kind: "filesystem", arguments: ["--seed", "7", "pin"])
        }
        #expect(throws: VirtualCardError(.missingValue, "")) {
            try VirtualCardSpecification(kind: "filesystem", arguments: ["--seed"])
        }
    }

    @Test func everyFaultOfTheHelpTextIsOne() throws {
        for (index, fault) in FaultPlan.kinds.enumerated() {
            #expect(try FaultPlan(parsing: "\(fault.0)@\(index + 1)").faults.count == 1)
            #expect(!fault.1.isEmpty)
        }
    }

    @Test func everyKindSaysWhatItIsInOneLine() throws {
        for kind in VirtualCardCatalog.kinds {
            #expect(!kind.summary.contains("\n") && !kind.summary.isEmpty)
            #expect(kind.summary.count <= 60 && kind.options.allSatisfy { $0.summary.count <= 52 })
            #expect(kind.options.contains { $0.name == "seed" } && kind.options.contains { $0.name == "fault" })
            #expect(try VirtualCardCatalog.make(kind: kind.name).kind == kind.name)
        }
    }
}
