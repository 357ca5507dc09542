// SPDX-License-Identifier: MIT

import Octets

/// The contactless registry (GlobalPlatform Amendment C), through the CRS application of the card.
///
/// Select ``GlobalPlatformHost/contactlessRegistryAID`` first.
extension GlobalPlatformHost {
    /// The CRS application (Amendment C 3.2).
    public static let contactlessRegistryAID: [UInt8] = [0xA0, 0x00, 0x00, 0x01, 0x51, 0x43, 0x52, 0x53, 0x00]

    /// GET STATUS of the CRS: the contactless applications in the order in which they are tried.
    public func contactlessRegistry(matching prefix: [UInt8] = []) async throws -> [ContactlessEntry] {
        let name = "GET STATUS [contactless]"
        var entries: [ContactlessEntry] = []
        var p2: UInt8 = 0x00
        for _ in 0..<1_000 {
            let (data, status) = try await perform(
                name, ins: 0xF2, p1: 0x40, p2: p2, data: TLV.encode(0x4F, prefix), accepted: [0x6310, 0x6A88])
            if status == 0x6A88 { return entries }
            guard let objects = try? TLV.parse(data) else {
                throw GlobalPlatformError(.malformedResponse, command: name, detail: "not a run of data objects")
            }
            for object in objects where object.tag == 0x61 {
                let parts = (try? object.children()) ?? []
                func value(_ tag: UInt32) -> [UInt8]? { parts.first { $0.tag == tag }.map { Array($0.value) } }
                guard let aid = value(0x4F), let state = value(0x9F70), state.count == 2 else {
                    throw GlobalPlatformError(.malformedResponse, command: name, detail: "an entry without name or state")
                }
                let counter = value(0x80).flatMap { $0.count == 2 ? UInt16($0[0]) << 8 | UInt16($0[1]) : nil }
                let head = value(0xA2).flatMap { TLV.find(0x4F, in: $0[...]) }.map { Array($0.value) }
                entries.append(
                    ContactlessEntry(
                        aid: aid, lifeCycle: state[0], activation: state[1], updateCounter: counter, head: head,
                        order: entries.count))
            }
            if status != 0x6310 { return entries }
            p2 = 0x01
        }
        throw GlobalPlatformError(.malformedResponse, command: name, detail: "6310 without an end")
    }

    /// SET STATUS of the CRS, availability: makes applications available over the contactless interface, or not.
    ///
    /// - Returns: the applications that the card could not change; empty when it changed all.
    @discardableResult
    public func setContactlessAvailability(_ isActive: Bool, of aids: [[UInt8]]) async throws -> [[UInt8]] {
        let (data, status) = try await perform(
            "SET STATUS [availability]", ins: 0xF0, p1: 0x01, p2: isActive ? 0x01 : 0x00,
            data: aids.flatMap { TLV.encode(0x4F, $0) }, accepted: [0x6320])
        guard status == 0x6320 else { return [] }
        guard let failed = TLV.find(0xA1, in: data[...]), let names = try? failed.children() else {
            throw GlobalPlatformError(.malformedResponse, command: "SET STATUS [availability]", statusWord: status)
        }
        return names.filter { $0.tag == 0x4F }.map { Array($0.value) }
    }

    /// SET STATUS of the CRS, priority: puts an application first in the order of selection, or last.
    public func setContactlessPriority(_ isFirst: Bool, of aid: [UInt8]) async throws {
        _ = try await perform(
            "SET STATUS [priority]", ins: 0xF0, p1: 0x02, p2: isFirst ? 0x01 : 0x80, data: TLV.encode(0x4F, aid))
    }
}
