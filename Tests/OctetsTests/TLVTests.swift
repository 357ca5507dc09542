// SPDX-License-Identifier: MIT

import Octets
import Testing

/// BER-TLV of ISO/IEC 7816-4 5.2.2.
@Suite struct TLVTests {
    private func parse(_ text: String, _ rules: TLVRules = TLVRules()) throws -> [TLV] {
        try TLV.parse(try Hex.decode(text), rules)
    }

    private func fault(_ text: String, _ rules: TLVRules = TLVRules()) -> TLVError? {
        #expect(throws: TLVError.self) { try parse(text, rules) }
    }

    @Test func objectsKeepTheirPlaces() throws {
        let objects = try parse("8701AA" + "5F1F020102" + "9F8A0103000000" + "99029000")
        #expect(objects.map(\.tag) == [0x87, 0x5F1F, 0x9F8A01, 0x99])
        #expect(objects.map(\.offset) == [0, 3, 8, 15])
        #expect(objects.map(\.headerLength) == [2, 3, 4, 2])
        #expect(objects.map { Hex.encode($0.value) } == ["AA", "0102", "000000", "9000"])
        #expect(objects.map(\.isConstructed) == [false, false, false, false])
    }

    @Test(arguments: [
        (0x30, true), (0x7F61, true), (0x5F1F, false), (0x87, false), (0xA1, true), (0x7F81_8101, true), (0x1F81_8101, false),
    ])
    func bit6OfTheFirstOctetSaysConstructed(tag: UInt32, isConstructed: Bool) throws {
        let object = try TLV.first(in: TLV.encode(tag, [])[...])
        #expect(object.tag == tag && object.isConstructed == isConstructed)
    }

    @Test(arguments: [0, 1, 127, 128, 255, 256, 65_535, 65_536, 70_000])
    func aLengthIsWrittenShortestAndReadAgain(count: Int) throws {
        let value = [UInt8](repeating: 0x5A, count: count)
        let octets = TLV.encode(0x5F2E, value)
        let object = try TLV.first(in: octets[...])
        #expect(object.tag == 0x5F2E && object.value.count == count && object.headerLength + count == octets.count)
        #expect(TLV.lengthOctets(count).count == (count < 128 ? 1 : count < 256 ? 2 : count < 65_536 ? 3 : 4))
    }

    @Test func lengthsLongerThanNeededAreRead() throws {
        #expect(try parse("538101AA").first?.value == [0xAA])
        #expect(try parse("5384" + "00000001" + "AA").first?.value == [0xAA])
    }

    @Test func aLengthOf17OctetsIsAbsurdAndSaidSo() {
        // emv-bertlv#9: a template whose length octet 91 was meant as 145.
        let error = fault("7091" + "5713" + "47" + String(repeating: "00", count: 142))
        #expect(error?.code == .lengthTooLong(octets: 17) && error?.offset == 1)
    }

    @Test func zerosBetweenAndAfterObjectsAreFiller() throws {
        // BerTlv.NET PR 3: an object list within a template, then zeros.
        let objects = try parse("0000" + "78085C025F7C5F7C0119" + "00" + "840101" + "000000")
        #expect(objects.map(\.tag) == [0x78, 0x84])
        #expect(objects.map(\.offset) == [2, 13])
        #expect(throws: TLVError.self) { try parse("00", TLVRules(allowsFiller: false)) }
    }

    @Test func ffIsFillerOnlyWhenNothingElseIsLeft() throws {
        #expect(try parse("840101" + "FFFFFFFFFF").map(\.tag) == [0x84])
        #expect(try parse("FF10023132" + "FFFF").map(\.tag) == [0xFF10])
        // bitgamma/tlv#1: FF before an object cannot be told from the start of a tag, and is refused rather than guessed at.
        #expect(fault("FFFFFFFFFFFFFFFF" + "570113")?.code == .tagTooLong)
    }

    @Test func aTemplateThatHoldsNoObjectsDoesNotHideTheNext() throws {
        // GlobalPlatformPro#152: 65 with a value that is not TLV.
        let octets = try Hex.decode("6F13" + "650AAACAADDEDFEDACADEEEE" + "8405A000000003")
        let template = try TLV.first(in: octets[...])
        let inner = try template.children()
        #expect(inner.map(\.tag) == [0x65, 0x84])
        #expect(throws: TLVError.self) { try inner[0].children() }
        #expect(TLV.find(0x84, in: octets[...]).map { Hex.encode($0.value) } == "A000000003")
    }

    @Test func aLengthThatIsNotThereIsRefusedBeforeAnythingIsMade() {
        // gmrtd PR 485: ten octets that claim four gigabytes.
        let error = fault("5384FFFFFFFF01020304")
        #expect(error?.code == .valueTruncated(wanted: 0xFFFF_FFFF, present: 4) && error?.offset == 6)
    }

    @Test(arguments: [
        ("5F", TLVError.Code.truncated, 1), ("5F1F", .truncated, 2), ("87", .truncated, 1), ("8782", .truncated, 2),
        ("878201", .truncated, 3),
        ("8780AA0000", .indefiniteLength, 1), ("87850000000001AA", .lengthTooLong(octets: 5), 1),
        ("5F8181818101", .tagTooLong, 0),
        ("8401018702AA", .valueTruncated(wanted: 2, present: 1), 5), ("87FF", .lengthTooLong(octets: 127), 1),
    ])
    func aFaultIsNamedWithItsPlace(text: String, code: TLVError.Code, offset: Int) {
        let error = fault(text)
        #expect(error?.code == code)
        #expect(error?.offset == offset)
    }

    @Test func offsetsOfChildrenCountFromTheirTemplate() throws {
        let template = try #require(try parse("8400" + "7006" + "810182" + "0202AA").last)
        let error = #expect(throws: TLVError.self) { try TLV.parse(template.value) }
        #expect(error?.offset == 5)
    }

    @Test func aHeaderIsReadWithoutItsValue() throws {
        let header = try #require(try TLV.header(in: try Hex.decode("7582484A")[...]))
        #expect(header.tag == 0x75 && header.headerLength == 4 && header.valueLength == 0x484A)
        #expect(try TLV.header(in: [0x75, 0x82, 0x48][...]) == nil)
        #expect(try TLV.header(in: []) == nil)
        #expect(throws: TLVError.self) { try TLV.header(in: [0x75, 0x80][...]) }
    }

    @Test func slicesThatDoNotBeginAtZeroAreRead() throws {
        let octets = try Hex.decode("FFFFFF8701AA990290")
        #expect(try TLV.parse(octets[3..<6]).map(\.offset) == [0])
        #expect(#expect(throws: TLVError.self) { try TLV.parse(octets[3...]) }?.offset == 5)
    }

    @Test func findStopsAtItsDepth() throws {
        var octets = TLV.encode(0x84, [1])
        for _ in 0..<20 { octets = TLV.encode(0x70, octets) }
        #expect(TLV.find(0x84, in: octets[...]) == nil)
        #expect(TLV.find(0x84, in: octets[...], depth: 21)?.value == [1])
    }

    @Test func anyOctetsAreObjectsOrAFaultInsideThem() {
        var generator = SystemRandomNumberGenerator()
        let likely: [UInt8] = [0x00, 0x01, 0x02, 0x30, 0x5F, 0x70, 0x7F, 0x80, 0x81, 0x82, 0x84, 0x85, 0x87, 0x99, 0xFF]
        var parsed = 0
        for _ in 0..<50_000 {
            let octets = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                Bool.random(using: &generator)
                    ? likely.randomElement(using: &generator) ?? 0 : UInt8.random(in: 0...255, using: &generator)
            }
            do throws(TLVError) {
                var end = 0
                for object in try TLV.parse(octets) {
                    let value = octets[(object.offset + object.headerLength)...].prefix(object.value.count)
                    guard object.offset >= end, object.value == value else {
                        Issue.record("\(Hex.encode(octets)) at \(object.offset)")
                        return
                    }
                    end = object.offset + object.headerLength + object.value.count
                }
                parsed += 1
            } catch {
                #expect((0...octets.count).contains(error.offset) && !error.description.isEmpty)
            }
            _ = TLV.find(0x84, in: octets[...])
        }
        #expect(parsed > 1_000)
    }
}
