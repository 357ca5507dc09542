// SPDX-License-Identifier: MIT

import Octets
import TraceFile

/// Traces of published bytes that scripts of `Tests/Scripts` look at, written where the script runs.
enum SpecimenTraces {
    /// The traces that a script of this name wants, into `folder`.
    static func write(for script: String, to folder: String) throws {
        guard script == "show-gate.txt" else { return }
        try log(to: "\(folder)/desfire-ev1-aes-read-cmac.pcapng")
        try gate(to: "\(folder)/gate.pcapng")
    }

    private static let header = TraceHeader(session: "00000000-0000-0000-0000-000000000005")

    /// Exchanges of a reader: the slot's number, command, answer.
    private static func exchanges(
        _ list: [(slot: Int, sent: String, received: String)], from first: UInt64, _ writer: inout TraceWriter
    ) throws {
        for (number, exchange) in list.enumerated() {
            let time = UInt64(number) * 10_000_000
            for (direction, octets, delay) in [(RowDirection.sent, exchange.sent, 0), (.received, exchange.received, 4_000_000)] {
                try writer.writeRow(
                    time: 1_764_500_000_000_000_000 + time + UInt64(delay), interface: exchange.slot, direction: direction,
                    packetID: first + UInt64(number), dissector: "iso7816", body: try Hex.decode(octets))
            }
        }
    }

    /// The published log of a self test with a real DESFire EV1: authentication with AES, then plain data under a running CMAC.
    private static func log(to path: String) throws {
        var writer = try TraceWriter(creating: path, header: header, interfaces: [TraceInterface(.apdu(0))])
        try writer.write(secrets: [
            SecretRecord(kind: .key, name: "desfire.key", octets: try Hex.decode("10182028303840485058606870788088"))
        ])
        try exchanges(
            [
                (0, "90AA0000010000", "B351CB2465D4F33AC627FD6E87A168F291AF"),
                (
                    0, "90AF000020044B6CAC343A0865895149649CA8DDE1F5AC4EC67BD208900AF02F049E05F0B000",
                    "A2EE144B1012FBEB7B2F11132D95A4549100"
                ),
                (0, "90CD0000070500110050000000", "A75316AD1596B9539100"), (0, "906F000000", "052D5FF67FFEC9D2D39100"),
                (0, "90F50000010500", "000011005000002AAC7517024E09DC9100"),
                (
                    0,
                    "903D00003B05000000340000000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F20212223242526272829"
                        + "2A2B2C2D2E2F3031323300", "765C9DAA50ECB62F9100"
                ),
                (
                    0, "903D000023053400001C00003435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F00",
                    "3E0AED986B8B0F379100"
                ),
                (
                    0, "90BD0000070500000030000000",
                    "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F"
                        + "4C65F1F842262BAC9100"
                ),
                (
                    0, "90BD0000070530000020000000",
                    "303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4FF02205CF913C03C99100"
                ),
            ], from: 23, &writer)
        try writer.close()
    }

    /// A gate with its card in one slot and the module that holds the card's keys in another: NXP AN12196, table 14, then a command
    /// whose MAC was made with counter 1 where 0 is due.
    private static func gate(to path: String) throws {
        var writer = try TraceWriter(
            creating: path, header: header,
            interfaces: [
                TraceInterface(.apdu(0), description: "ACR1252 PICC 0 (T=CL)"),
                TraceInterface(.apdu(1), description: "ACR1252 SAM 0 (T=1)"),
            ])
        try exchanges(
            [
                (0, "905A00000301F4A100", "9100"), (0, "90F50000010200", "000300002000009100"),
                (0, "9071000002000000", "A04C124213C186F22399D33AC2A3021591AF"),
                (
                    1, "800A0000120100A04C124213C186F22399D33AC2A3021500",
                    "35C3E05A752E0144BAC0DE51C1F22C56B34408A23D8AEA266CAB947EA8E0118D90AF"
                ),
                (
                    0, "90AF00002035C3E05A752E0144BAC0DE51C1F22C56B34408A23D8AEA266CAB947EA8E0118D00",
                    "3FA64DB5446D1F34CD6EA311167F5E4985B89690C04A05F17FA7AB2F081206639100"
                ),
                (1, "800A0000203FA64DB5446D1F34CD6EA311167F5E4985B89690C04A05F17FA7AB2F0812066300", "9000"),
                (1, "80D5000000", "1309C877509E5A215007FF0ED19CA5644C6626F5E72EA694202139295C7A7FC79000"),
                (0, "90AD00000F020000002000000D9A14E322A873F300", "911E"),
            ], from: 31, &writer)
        try writer.close()
    }
}
