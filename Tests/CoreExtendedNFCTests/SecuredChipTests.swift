// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Octets
import Testing

/// The chip that the other tests stand on answers as ICAO 9303-11 appendix D says.
@Suite struct SecuredChipTests {
    @Test func theChipsAnswersAreThoseOfAppendixD() async throws {
        let chip = SecuredChip(files: [.com: SpecimenFiles.com])
        for (sent, expected) in [
            ("00A4040C07A0000002471001", "9000"), ("0084000008", AppendixD.challenge + "9000"),
            (AppendixD.authenticate, AppendixD.authenticated),
            ("0CA4020C158709016375432908C044F68E08BF8B92D635FF24F800", "990290008E08FA855A5D4C50A8ED9000"),
            ("0CB000000D9701048E08ED6705417E96BA5500", "8709019FF0EC34F9922651990290008E08AD55CC17140B2DED9000"),
            (
                "0CB000040D9701128E082EA28A70F3C7B53500",
                "871901FB9235F4E4037F2327DCC8964F1F9B8C30F42C8E2FFF224A990290008E08C8B2787EAEA07D749000"
            ),
        ] {
            #expect(Hex.encode(try await chip.sendAPDU(command(sent)).octets) == expected)
        }
    }
}
