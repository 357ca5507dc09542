// SPDX-License-Identifier: MIT

import Foundation
import Testing

@testable import Replay

/// Results that hold what was drawn.
@Suite struct BoundValuesTests {
    private let recorded = [UInt8](0x00...0x0F)
    private let now = [UInt8](0x80...0x8F)

    @Test func anIdentifierOfTheSameDrawIsTheSame() {
        let bound = BoundValues([.init(recorded: recorded, now: now)])
        // RFC 9562 5.4: version 4 in the seventh octet, variant 10 in the ninth.
        #expect(bound.areOneDraw("00010203-0405-4607-8809-0A0B0C0D0E0F", "80818283-8485-4687-8889-8A8B8C8D8E8F"))
        #expect(bound.areOneDraw("000102030405060708090A0B0C0D0E0F", "808182838485868788898A8B8C8D8E8F"))
    }

    @Test func anIdentifierOfAnotherDrawIsAnother() {
        let other = BoundValues.Draw(recorded: [UInt8](0x20...0x2F), now: [UInt8](0xA0...0xAF))
        let bound = BoundValues([.init(recorded: recorded, now: now), other])
        #expect(!bound.areOneDraw("20212223-2425-4627-A829-2A2B2C2D2E2F", "80818283-8485-4687-8889-8A8B8C8D8E8F"))
        #expect(!bound.areOneDraw("00010203-0405-4607-8809-0A0B0C0D0E0F", "80818283-8485-4687-8889-8A8B8C8D8E80"))
    }

    @Test func withoutTheRecordedDrawTheFormAloneIsCompared() {
        let bound = BoundValues([.init(recorded: nil, now: now)])
        #expect(bound.areOneDraw("FFFFFFFF-FFFF-4FFF-8FFF-FFFFFFFFFFFF", "80818283-8485-4687-8889-8A8B8C8D8E8F"))
        #expect(!bound.areOneDraw("points", "80818283-8485-4687-8889-8A8B8C8D8E8F"))
    }

    @Test func shortDrawsAreNeverTakenForAValue() {
        let bound = BoundValues([.init(recorded: [1], now: [2])])
        #expect(!bound.areOneDraw("01", "02"))
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func aCredentialSessionWithFreshIdentifiersIsTheSame(_ seed: UInt64) async throws {
        var replay = try Replay(of: KeptTracesTests.folder.appendingPathComponent("credential-session.pcapng").path)
        replay.options.mode = .resealed
        replay.options.entropy = .seed(seed)
        let report = await replay.run()
        #expect(report.isSame, "\(report.verdict)")
    }
}
