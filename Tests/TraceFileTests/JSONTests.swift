// SPDX-License-Identifier: MIT

import Foundation
import Testing

@testable import TraceFile

@Suite struct JSONTests {
    @Test func canonicalTextHasSortedKeysAndNoBlanks() throws {
        let value = try JSONValue.parse(" { \"b\" : [ 1 , 2.5 , true , null ] , \"a\" : \"x\\u00e9\\n\" , \"B\" : { } } ")
        #expect(value.text == "{\"B\":{},\"a\":\"x\u{E9}\\n\",\"b\":[1,2.5,true,null]}")
        #expect(try JSONValue.parse(value.text) == value)
    }

    @Test(arguments: [
        ("0", JSONValue.integer(0)), ("-1", .integer(-1)), ("9223372036854775807", .integer(.max)),
        ("9223372036854775808", .number(9.223372036854775808e18)),
        ("1.0", .number(1)), ("1e3", .number(1000)), ("\"\\ud83d\\ude00\"", .string("\u{1F600}")), ("\"\\/\"", .string("/")),
        ("[]", .array([])),
    ]) func valuesAreWhatTheySay(_ text: String, _ expected: JSONValue) throws {
        #expect(try JSONValue.parse(text) == expected)
    }

    @Test(arguments: [
        ("", JSONError.Code.unexpectedEnd, 0), ("{", .unexpectedEnd, 1), ("{\"a\"}", .unexpectedOctet, 4),
        ("[1,]", .unexpectedOctet, 3), ("01", .trailing, 1),
        ("1.", .badNumber, 2), ("-", .badNumber, 1), ("1e999", .badNumber, 5), ("\"\\x\"", .badEscape, 3),
        ("\"\\ud800\"", .unexpectedOctet, 7),
        ("\"\n\"", .unexpectedOctet, 1), ("nul", .unexpectedEnd, 3), ("1 2", .trailing, 2), ("'a'", .unexpectedOctet, 0),
    ]) func wrongTextIsRefusedWithItsPlace(_ text: String, _ code: JSONError.Code, _ offset: Int) {
        do throws(JSONError) {
            _ = try JSONValue.parse(text)
            Issue.record("it was read")
        } catch {
            #expect(error.code == code)
            #expect(error.offset == offset)
        }
    }

    @Test func depthAndNumberOfValuesAreBounded() throws {
        let deep = String(repeating: "[", count: 100_000)
        #expect(throws: JSONError(.tooDeep, offset: 64)) { try JSONValue.parse(deep) }
        #expect(throws: JSONError(.tooLarge, offset: 0)) { try JSONValue.parse("[1,2,3,4]", values: 4) }
        let fits = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
        #expect(throws: Never.self) { try JSONValue.parse(fits) }
    }

    @Test func textThatIsNoUTF8IsRefused() {
        #expect(throws: JSONError(.notUTF8, offset: 1)) { try JSONValue.parse([0x22, 0xC3, 0x28, 0x22]) }
    }

    @Test func aValueGoesThroughFoundationsCoders() throws {
        let value: JSONValue = ["a": [1, true, nil, "x", ["b": 2]], "c": .number(2.5)]
        let data = try JSONEncoder().encode(value)
        #expect(try JSONDecoder().decode(JSONValue.self, from: data) == value)
        #expect(try JSONValue.parse([UInt8](data)) == value)
    }

    @Test func numbersThatAreNotFiniteAreNull() {
        #expect(JSONValue.array([.number(.infinity), .number(.nan)]).text == "[null,null]")
    }
}

@Suite struct MetaRowTests {
    /// Every form of CONTRACT's list, in its order of keys.
    static let texts = [
        #"{"td":"transport","id":1,"kind":"iso7816","identifier":"04A1","initialAID":"A0000002471001","systemCode":"12FC","icManufacturerCode":4,"atr":"3B00"}"#,
        #"{"td":"transport","id":2,"kind":"raw"}"#,
        #"{"td":"call","id":1,"parent":null,"flow":"passport","function":"readPassport(transport:mrzKey:)","args":{"mrzKey":{"sealed":"call:1:mrzKey"},"transport":{"omitted":"transport"}},"transport":1}"#,
        #"{"td":"call","id":2,"parent":1,"flow":null,"function":"sendAPDUWithChaining(_:)","args":{}}"#,
        #"{"td":"progress","call":1,"text":"reading DG1"}"#,
        #"{"td":"progress","call":1,"text":{"sealed":"call:1:progress:0"}}"#,
        #"{"td":"entropy","call":1,"label":"bac.rndIFD","index":0,"length":8}"#,
        #"{"td":"clock","call":1,"kind":"calendar","ns":"1764500000000000000"}"#,
        #"{"td":"state","call":1,"machine":"CredentialSession","from":"management","to":"wired"}"#,
        #"{"td":"event","call":1,"name":"cardEmulationTimeout","detail":{"after":15}}"#,
        #"{"td":"error","after":12,"domain":"PCSC","case":"tagConnectionLost","code":"8010001D"}"#,
        #"{"td":"return","call":1,"ok":true}"#,
        #"{"td":"return","call":1,"ok":false,"domain":"NFCError","case":"tagConnectionLost"}"#,
        #"{"td":"reader","name":"control","code":"00000000","control":1107299656,"in":"","out":{"sealed":"x"},"atr":"3B00"}"#,
        #"{"td":"mark","text":"a \"word\""}"#,
        #"{"td":"entropy","call":1,"label":"x","index":0,"length":8,"alpha":1,"zeta":[]}"#,
        #"{"td":"later","a":{"b":1},"z":2}"#,
    ]

    @Test(arguments: texts) func everyRowReadsAndWritesTheSameText(_ text: String) throws {
        let row = try #require(MetaRow(body: [UInt8](text.utf8)))
        #expect(row.text == text)
        let isUnknown = if case .unknown = row { true } else { false }
        #expect(isUnknown == text.contains("later"))
    }

    @Test func membersHaveTheirValues() throws {
        let row = MetaRow(body: [UInt8](Self.texts[2].utf8))
        guard case .call(let call)? = row else { throw TestFailure() }
        #expect(call.flow == "passport")
        #expect(call.args["mrzKey"]?.sealedName == "call:1:mrzKey")
        #expect(call.args["transport"]?.omittedWhat == "transport")
        #expect(call.transport == 1)
        #expect(call.parent == nil)
        #expect(call.extra.isEmpty)
        let clock = MetaRow(body: [UInt8](Self.texts[7].utf8))
        #expect(clock == .clock(MetaRow.Clock(call: 1, kind: .calendar, nanoseconds: 1_764_500_000_000_000_000)))
    }

    @Test(arguments: [
        #"{"td":"call","id":"one","function":"f"}"#, #"{"td":"clock","call":1,"kind":"sundial","ns":"1"}"#,
        #"{"td":"entropy","call":1,"label":"x","index":0.5,"length":8}"#,
    ]) func aRowWithAWrongTypeIsKeptAsItIs(_ text: String) throws {
        let row = try #require(MetaRow(body: [UInt8](text.utf8)))
        guard case .unknown(let members) = row else { throw TestFailure() }
        #expect(JSONValue.object(members) == (try JSONValue.parse(text)))
    }

    @Test(arguments: ["", "[]", "{}", #"{"td":1}"#, "{", #""td""#]) func whatHasNoKindIsNoRow(_ text: String) {
        #expect(MetaRow(body: [UInt8](text.utf8)) == nil)
    }

    @Test func aReadersEventIsALineAndItsTwin() throws {
        let event = MetaRow.reader(MetaRow.Reader(name: "connect", code: "00000000", atr: [0x3B, 0x00]))
        let rows = ReaderRows.rows(for: event, reader: "ACS ACR1252U", time: 5, interface: 2, packetID: 7)
        #expect(rows.map(\.dissector) == ["syslog", "json"])
        #expect(rows.allSatisfy { $0.time == 5 && $0.interface == 2 && $0.packetID == 7 && $0.direction == nil })
        #expect(String(decoding: rows[0].body, as: UTF8.self) == "<13>ACS ACR1252U: connect ATR 3B00 code 00000000")
        #expect(MetaRow(body: rows[1].body) == event)
    }

    @Test func aFailureIsALineOfErrorAndNoOctetsAreShown() {
        let error = MetaRow.error(MetaRow.Failure(after: 12, domain: "PCSC", case: "tagConnectionLost", code: "80100069"))
        #expect(ReaderRows.line(for: error, reader: "R") == "<11>R: error PCSC tagConnectionLost 80100069 after exchange 12")
        let removal = MetaRow.reader(MetaRow.Reader(name: "removal"))
        #expect(ReaderRows.line(for: removal, reader: "a\nb") == "<11>a b: removal")
        let control = MetaRow.reader(
            MetaRow.Reader(name: "control", code: "00000000", control: 5, input: .plain([0x12, 0x34]), output: .sealed("x")))
        #expect(ReaderRows.line(for: control, reader: "R") == "<13>R: control 5 in 2 bytes out sealed code 00000000")
    }
}

struct TestFailure: Error {}
