// SPDX-License-Identifier: MIT

import Octets

/// The contactless registry application (GlobalPlatform Amendment C): availability and order of the contactless applications.
extension SecureElementMachine {
    mutating func runContactlessRegistry(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.cla & 0xFC == 0x80 || (command.cla & 0xFC == 0x00 && command.ins == 0xCA) else { throw .classNotSupported }
        switch command.ins {
        case 0xCA:
            guard command.parameters == 0x00A5 else { throw .referencedDataNotFound }
            return CardReply(TLV.encode(0xA5, TLV.encode(0x9F08, [0x01, 0x00]) + TLV.encode(0x80, [0x00, 0x01])))
        case 0xF2: return try contactlessStatus(command)
        case 0xF0: return try setContactlessStatus(command)
        default: throw .instructionNotSupported
        }
    }

    private mutating func contactlessStatus(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.p1 == 0x40, command.p2 & 0xFE == 0 else { throw .wrongParameters }
        let entries: [[UInt8]]
        if command.p2 == 0x01 {
            guard let listing = channel.listing else { throw .conditionsNotSatisfied }
            entries = listing.entries
        } else {
            guard let objects = try? TLV.parse(command.data), let prefix = objects.first(where: { $0.tag == 0x4F }) else {
                throw .wrongData
            }
            let isTold = memory.applications.filter {
                !$0.isSecurityDomain && $0.applet != nil && $0.aid.starts(with: prefix.value)
            }
            entries = isTold.map { application in
                var body = TLV.encode(0x4F, application.aid)
                body += TLV.encode(0x9F70, [application.state, application.contactless])
                body += TLV.encode(0x80, Self.number(Int(application.updates), 2))
                if !application.head.isEmpty { body += TLV.encode(0xA2, TLV.encode(0x4F, application.head)) }
                return TLV.encode(0x61, body)
            }
        }
        channel.listing = nil
        guard !entries.isEmpty else { throw .referencedDataNotFound }
        let (data, rest) = page(entries)
        if !rest.isEmpty { channel.listing = (0xF2, 0x40, rest) }
        return CardReply(data, rest.isEmpty ? .success : StatusWord(rawValue: 0x6310))
    }

    /// A reader's selection does not outlive its availability.
    private mutating func deselectContactless(_ aid: [UInt8]) {
        for number in contactless.channels.indices where contactless.channels[number]?.selected == aid {
            contactless.channels[number] = ElementLogicalChannel()
            if let place = memory.index(of: aid) { memory.applications[place].applet?.deselect() }
        }
    }

    private mutating func setContactlessStatus(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard let objects = try? TLV.parse(command.data), !objects.isEmpty, objects.allSatisfy({ $0.tag == 0x4F }) else {
            throw .wrongData
        }
        let names = objects.map { Array($0.value) }
        switch (command.p1, command.p2) {
        case (0x01, 0x00), (0x01, 0x01):
            var failed: [[UInt8]] = []
            for name in names {
                // Non-activatable is the application's own word, which nobody else takes back.
                guard let place = memory.index(of: name), memory.applications[place].applet != nil,
                    memory.applications[place].contactless != 0x80, !memory.applications[place].isLocked
                else {
                    failed.append(name)
                    continue
                }
                guard memory.applications[place].contactless != command.p2 else { continue }
                memory.applications[place].contactless = command.p2
                memory.applications[place].updates &+= 1
                if command.p2 == 0x00 { deselectContactless(name) }
            }
            guard !failed.isEmpty else { return CardReply() }
            return CardReply(TLV.encode(0xA1, failed.flatMap { TLV.encode(0x4F, $0) }), StatusWord(rawValue: 0x6320))
        case (0x02, 0x01), (0x02, 0x80):
            guard names.count == 1, let place = memory.index(of: names[0]), memory.applications[place].applet != nil else {
                throw .referencedDataNotFound
            }
            // Priority is the place in the registry, after what the element was delivered with.
            let application = memory.applications.remove(at: place)
            if command.p2 == 0x01 {
                memory.applications.insert(application, at: min(ElementNames.delivered.count, memory.applications.count))
            } else {
                memory.applications.append(application)
            }
            return CardReply()
        default: throw .wrongParameters
        }
    }
}
