// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Foundation
import Testing
import VirtualCards

/// The card is taken away at each single command.
@Suite struct DESFireTearingTests {
    @Test(arguments: DESFireSetting.all, [false, true])
    func aTransactionIsDoneWhollyOrNotAtAll(_ setting: DESFireSetting, takesEffect: Bool) async throws {
        var outcomes: Set<Bool> = []
        for step in 1...200 {
            let transport = try setting.transport()
            var isDone = true
            do {
                let torn = Vanishing(transport, at: step, takesEffect: takesEffect)
                var card = try await setting.card(over: torn, key: 3)
                try await card.write(6, Data(repeating: 7, count: 130))
                try await card.debit(9, 100)
                try await card.writeRecord(15, Data(repeating: 9, count: 24))
                try await card.commitTransaction()
            } catch NFCError.tagConnectionLost {
                isDone = false
            }
            // The same card, put back.
            var card = try await setting.card(over: VirtualCardTransport(transport.card), key: 3)
            let data = try await card.read(6, length: 130)
            let isThere = data == Data(repeating: 7, count: 130)
            #expect(isThere || data == Data(count: 130), "step \(step)")
            #expect(try await card.value(9) == (isThere ? 400 : 500), "step \(step)")
            #expect(try await card.fileSettings(15).currentRecords == (isThere ? 1 : 0), "step \(step)")
            #expect(!isDone || isThere, "step \(step)")
            outcomes.insert(isThere)
            if isDone { break }
        }
        #expect(outcomes == [false, true])
    }

    @Test(arguments: DESFireSetting.all) func aProtectedWriteInPiecesIsDoneWhollyOrNotAtAll(_ setting: DESFireSetting)
        async throws
    {
        // What a MAC or a checksum covers is not written before it was checked, so that no piece of it stands alone.
        for file in UInt8(2)...3 {
            for step in 1...40 {
                let transport = try setting.transport()
                var isDone = true
                do {
                    var card = try await setting.card(
                        over: Vanishing(transport, at: step, takesEffect: step % 2 == 0), key: 3)
                    try await card.write(file, Data(repeating: 7, count: 150))
                } catch NFCError.tagConnectionLost {
                    isDone = false
                }
                var card = try await setting.card(over: VirtualCardTransport(transport.card), key: 3)
                let data = try await card.read(file, length: 150)
                #expect(data == Data(repeating: 7, count: 150) || (!isDone && data == Data(count: 150)), "step \(step)")
                if isDone { break }
            }
        }
    }
}
