// SPDX-License-Identifier: MIT

import CardSockets
import Octets
import Testing
import VirtualCards

@Suite struct FaultTests {
    private static let read = "00B0810004"
    private static let select = "00A4000C020001"

    private func faulty(_ plan: String) throws -> VirtualCard {
        VirtualCard(kind: "filesystem", machine: FileSystemCard(), faults: try FaultPlan(parsing: plan)).on()
    }

    @Test func aPlanIsReadItemByItem() throws {
        let plan = try FaultPlan(parsing: "remove@12,6C@3,61@4,6A82@5,mute@6,reset@7,short@8,flip@9,91AF@1")
        #expect(
            plan.faults == [
                12: .remove, 3: .wrongLe, 4: .getResponse, 5: .status(0x6A82), 6: .mute, 7: .reset, 8: .short, 9: .flip,
                1: .status(0x91AF),
            ])
    }

    @Test(arguments: [
        ("", 1), ("remove", 7), ("remove@", 8), ("remove@0", 8), ("remove@-1", 8), ("remove@x", 8), ("remove@1,", 10),
        ("6C@3,removed@4", 6), ("6A82@3,mute@3", 8), ("5000@1", 1), ("6000@1", 1), ("6A8@1", 1),
        ("remove@99999999999999999999", 8),
        ("remove@1,6C@2,6A82@", 20),
    ])
    func whatIsNoPlanIsRefusedWithItsColumn(text: String, column: Int) {
        let error = #expect(throws: VirtualCardError.self) { try FaultPlan(parsing: text) }
        #expect(error?.code == .badFault)
        #expect(error?.column == column)
    }

    @Test func aRemovedCardStaysAwayUntilItIsPutBack() throws {
        let card = try faulty("remove@2")
        try play([(Self.select, "9000")], on: card)
        #expect(card.exchange([0, 0xB0, 0, 0, 1]) == .removed)
        #expect(card.exchange([0, 0xB0, 0, 0, 1]) == .removed)
        card.powerOn()
        try play([(Self.select, "9000")], on: card)
    }

    @Test func aMuteCardAnswersTheNextCommand() throws {
        let card = try faulty("mute@1")
        #expect(card.exchange([0, 0xA4, 0, 0x0C]) == .silence)
        try play([("00A4000C", "9000")], on: card)
    }

    @Test func aCardWithoutPowerIsSilent() throws {
        let card = VirtualCard(kind: "filesystem", machine: FileSystemCard())
        #expect(card.exchange([0, 0xA4, 0, 0x0C]) == .silence)
        card.powerOn()
        card.powerOff()
        #expect(card.exchange([0, 0xA4, 0, 0x0C]) == .silence)
    }

    @Test func theCountStartsAgainWithPower() throws {
        let card = try faulty("6F00@2")
        try play([(Self.select, "9000"), (Self.select, "6F00"), (Self.select, "9000")], on: card)
        card.powerOn()
        try play([(Self.select, "9000"), (Self.select, "6F00")], on: card)
    }

    @Test func aStatusFaultLeavesTheCommandUndone() throws {
        // The wrong PIN is not counted.
        try play([("002000010430303030", "6F00"), ("00200001", "63C3")], on: faulty("6F00@1"))
    }

    @Test func aWrongLeIsToldTheRightOne() throws {
        let card = try faulty("6C@1,6C@3,6C@4")
        try play([("00B0810010", "6C10"), (Self.read, "*9000"), (Self.select, "9000"), ("00B0000000", "6C00")], on: card)
        #expect(try card.send("00B0000000").count == 258)
        // The card has not seen the command: what it counts stands.
        try play([("0084000008", "6C08")], on: faulty("6C@1"))
        let challenges = try faulty("6C@1")
        _ = try challenges.send("0084000008")
        #expect(try challenges.send("0084000008") == faulty("mute@9").send("0084000008"))
    }

    @Test func dataWaitsForGetResponse() throws {
        let card = try faulty("61@1")
        let whole = Hex.encode(try faulty("mute@9").send("00B0810010"))
        try play(
            [
                ("00B0810010", "6110"), ("00C0000006", whole.prefix(12) + "610A"),
                ("00C0000000", whole.dropFirst(12).description),
                ("00C0000000", "6985"),
            ], on: card)
        let long = try faulty("61@1")
        try play([("00B08100" + "00012C", "6100"), ("00C0000000", "*612C"), ("00C000002C", "*9000")], on: long)
        try play([(Self.read, "6104"), (Self.select, "9000"), ("00C0000004", "6985")], on: faulty("61@1"))
        try play([(Self.select, "9000")], on: faulty("61@1"))
    }

    @Test func aResetForgetsAndGoesOn() throws {
        try play([(Self.select, "9000"), ("00B0000001", "6986"), ("00B0000001", "6F00")], on: faulty("reset@2,6F00@3"))
    }

    @Test func aShortAnswerIsHalf() throws {
        let card = try faulty("short@1,short@2")
        #expect(try card.send(Self.read).count == 3)
        #expect(try card.send("00A4000C").count == 1)
    }

    @Test func aFlippedBitIsTheLastOfTheData() throws {
        let right = try faulty("mute@9").send(Self.read)
        let flipped = try faulty("flip@1").send(Self.read)
        #expect(zip(right, flipped).map { $0 ^ $1 } == [0, 0, 0, 1, 0, 0])
        try play([("00A4000C", "9000")], on: faulty("flip@1"))
    }
}
