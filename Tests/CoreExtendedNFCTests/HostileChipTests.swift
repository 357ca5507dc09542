// SPDX-License-Identifier: MIT

import Testing

@testable import CoreExtendedNFC

@Suite struct HostileChipTests {
    @Test(arguments: [0, 1, 2, 3, 256, 65_536, 65_538])
    func aChipThatAlwaysAnswersTheSameEndsWithAnError(length: Int) async throws {
        for last in [[0x90, 0x00], [0x61, 0x00], [0x6C, 0x01], [0x67, 0x00], [0x62, 0x82]] as [[UInt8]] {
            let answer = [UInt8](repeating: 0x75, count: max(0, length - 2)) + last
            for stage in [0, 3, 4, 5, 6] {
                // Honest up to `stage`, then the same answer for ever.
                let honest = SecuredChip(files: SpecimenFiles.all) { count, _, plain in
                    count > stage ? .bare(Array(answer.suffix(length))) : .plain(plain)
                }
                await #expect(throws: (any Error).self) {
                    try await withAppendixD {
                        try await CoreExtendedNFC.readPassport(
                            transport: honest, mrzKey: AppendixD.mrzKey, dataGroups: [.com, .dg1])
                    }
                }
                #expect(honest.commands.count < 2_000)
            }
        }
    }

    @Test func aChipThatProtectsNonsenseEndsWithAnError() async throws {
        for kind in 0..<6 {
            let chip = SecuredChip(files: SpecimenFiles.all) { count, command, plain in
                guard count > 6 else { return .plain(plain) }
                switch kind {
                case 0: return .plain([0x90, 0x00])
                case 1: return .plain([0x61, 0x90, 0x00])
                case 2: return .plain([UInt8](repeating: 0x61, count: 240) + [0x90, 0x00])
                case 3: return .plain([0x61, 0x84, 0xFF, 0xFF, 0x90, 0x00])
                case 4: return .plain([0x6C, UInt8(truncatingIfNeeded: max(1, (command.ne ?? 1) - 1))])
                default: return .plain([0x67, 0x00])
                }
            }
            await #expect(throws: NFCError.self) {
                try await withAppendixD {
                    try await CoreExtendedNFC.readPassport(transport: chip, mrzKey: AppendixD.mrzKey, dataGroups: [.com, .dg1])
                }
            }
            #expect(chip.commands.count < 200)
        }
    }
}
