// SPDX-License-Identifier: MIT

import CardSockets
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite struct VPCDFramerTests {
    // vsmartcard#253: a reset and an ATR request in one segment, taken by some for one malformed message.
    @Test func twoMessagesInOneSegmentAreTwoMessages() {
        var framer = VPCDFramer()
        framer.append([0x00, 0x01, 0x02, 0x00, 0x01, 0x04])
        #expect(framer.next() == .reset)
        #expect(framer.next() == .atrRequest)
        #expect(framer.next() == nil)
        #expect(framer.pending == 0)
    }

    @Test func messagesCutAtEveryOctetAreTheSameMessages() {
        let command: [UInt8] = [0x00, 0xA4, 0x04, 0x00, 0x02, 0x3F, 0x00]
        let stream: [UInt8] = [0, 1, 0, 0, 1, 1] + [0, 7] + command + [0, 1, 4] + [0, 1, 9] + [0, 0]
        let expected: [VPCDMessage] = [.powerOff, .powerOn, .command(command), .atrRequest, .unknown(9), .command([])]
        for cut in 0...stream.count {
            var framer = VPCDFramer()
            var messages: [VPCDMessage] = []
            for piece in [stream[..<cut], stream[cut...]] {
                framer.append(piece)
                while let message = framer.next() { messages.append(message) }
            }
            #expect(messages == expected, "cut at \(cut)")
        }
    }

    @Test func aLengthWithoutItsMessageWaits() {
        var framer = VPCDFramer()
        framer.append([0xFF, 0xFF, 0x00])
        #expect(framer.next() == nil)
        #expect(framer.pending == 3)
    }

    @Test func anAnswerOver65535OctetsHasNoFrame() {
        #expect(VPCDFramer.frame([UInt8](repeating: 0, count: 65_535))?.prefix(2) == [0xFF, 0xFF])
        #expect(VPCDFramer.frame([UInt8](repeating: 0, count: 65_536)) == nil)
    }
}
