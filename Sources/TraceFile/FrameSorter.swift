// SPDX-License-Identifier: MIT

/// How a frame stands in a trace: under which stock dissector, with which text, and which octets.
struct SortedFrame: Equatable {
    var dissector: String
    var protocolText: String?
    var body: [UInt8]

    /// Under `iso14443` with the pseudo-header of link type 264: version 0, the event (FE from the reader, FF from the
    /// card, both with checksum), and the length, high octet first.
    static func iso14443(_ frame: ArraySlice<UInt8>, isAnswer: Bool) -> SortedFrame {
        let count = UInt16(clamping: frame.count)
        let head: [UInt8] = [0, isAnswer ? 0xFF : 0xFE, UInt8(count >> 8), UInt8(truncatingIfNeeded: count)]
        return SortedFrame(dissector: "iso14443", protocolText: nil, body: head + frame)
    }

    static func data(_ frame: ArraySlice<UInt8>, _ text: String) -> SortedFrame {
        SortedFrame(dissector: "data", protocolText: text, body: [UInt8](frame))
    }
}

/// Decides for each frame of a capture how it stands in the trace. Wireshark's `iso14443` takes every octet string for a
/// frame of ISO/IEC 14443-3 or -4 and shows Ultralight commands as blocks, so only frames of these standards go there.
struct FrameSorter {
    private enum Sorter {
        case a(TypeASorter)
        case b(TypeBSorter)
        case felica
        case plain(String)
    }

    private var sorter: Sorter

    init(_ rf: RFProtocol?) {
        switch rf {
        case .iso14443A: sorter = .a(TypeASorter())
        case .iso14443B: sorter = .b(TypeBSorter())
        case .felica: sorter = .felica
        case .iso15693, .iClass, .lowFrequency: sorter = .plain(rf?.name ?? "RF")
        case nil: sorter = .plain("RF")
        }
    }

    mutating func sort(_ frame: ArraySlice<UInt8>, isAnswer: Bool) -> SortedFrame {
        switch sorter {
        case .a(var type):
            defer { sorter = .a(type) }
            return type.sort(frame, isAnswer: isAnswer)
        case .b(var type):
            defer { sorter = .b(type) }
            return type.sort(frame, isAnswer: isAnswer)
        case .felica: return Self.felica(frame)
        case .plain(let text): return .data(frame, text)
        }
    }

    /// The dissector `felica` begins with the command's code: sync, length and a right checksum go.
    private static func felica(_ frame: ArraySlice<UInt8>) -> SortedFrame {
        let bare = frame.starts(with: [0xB2, 0x4D]) ? frame.dropFirst(2) : frame
        guard let length = bare.first, bare.count == Int(length) + 2, length >= 2, FrameChecksum.endsWithFeliCa(bare) else {
            return .data(frame, RFProtocol.felica.name)
        }
        return SortedFrame(dissector: "felica", protocolText: nil, body: [UInt8](bare.dropFirst().dropLast(2)))
    }
}

/// Follows the states of a type A card (ISO/IEC 14443-3 6.3, 14443-4) as far as the frames' meaning depends on them.
struct TypeASorter {
    private enum Phase: Equatable {
        /// The capture began in the middle.
        case unknown
        /// REQA or WUPA was sent.
        case requested
        case anticollision
        case selecting
        /// With this SAK, completely.
        case selected(UInt8)
        case rats
        /// Blocks of ISO/IEC 14443-4.
        case blocks
        /// MIFARE Classic after its first authentication command: what follows is, for us, noise.
        case encrypted
        case halted
    }

    private var phase = Phase.unknown
    /// The text under which the last command was shown, for its answer.
    private var lastText: String?

    mutating func sort(_ frame: ArraySlice<UInt8>, isAnswer: Bool) -> SortedFrame {
        isAnswer ? answer(frame) : command(frame)
    }

    private mutating func command(_ frame: ArraySlice<UInt8>) -> SortedFrame {
        let octets = [UInt8](frame.prefix(2))
        lastText = nil
        guard let first = octets.first else { return .data(frame, RFProtocol.iso14443A.name) }
        let isChecked = FrameChecksum.endsWithCRCA(frame)
        if frame.count == 1, first == 0x26 || first == 0x52 {
            phase = .requested
        } else if phase == .blocks {
            guard Self.isBlock(first, isAfterATS: true) else { return leaveBlocks(frame) }
        } else if phase == .encrypted {
            return .data(frame, "MIFARE Classic")
        } else if octets.count == 2, [0x93, 0x95, 0x97].contains(first), (0x20...0x70).contains(octets[1]) {
            phase = octets[1] == 0x70 ? .selecting : .anticollision
        } else if frame.elementsEqual([0x50, 0x00, 0x57, 0xCD]) {
            phase = .halted
        } else if first == 0xE0, frame.count == 4, isChecked {
            phase = .rats
        } else if phase == .unknown, isChecked, [0x02, 0x03, 0x0A, 0x0B].contains(first) {
            phase = .blocks
        } else {
            return mifare(frame, isChecked)
        }
        return .iso14443(frame, isAnswer: false)
    }

    /// Something that is no block although blocks were spoken: HLTA, or a new selection that was not heard whole.
    private mutating func leaveBlocks(_ frame: ArraySlice<UInt8>) -> SortedFrame {
        phase = .unknown
        return command(frame)
    }

    private mutating func mifare(_ frame: ArraySlice<UInt8>, _ isChecked: Bool) -> SortedFrame {
        guard let first = frame.first else { return .data(frame, RFProtocol.iso14443A.name) }
        // Enhanced contactless polling: readers send it between polls to wake a phone's wallet.
        if first == 0x6A, isChecked, phase != .encrypted, !isSelected { return .data(frame, "ECP") }
        let sorted: SortedFrame
        if case .selected(let sak) = phase, sak & 0x18 != 0 {
            if isChecked, first == 0x60 || first == 0x61 { phase = .encrypted }
            sorted = .data(frame, "MIFARE Classic")
        } else if case .selected(let sak) = phase, sak & 0x38 == 0 {
            let isRead = first == 0x30 && frame.count == 4 && isChecked
            sorted = SortedFrame(
                dissector: isRead ? "mifare" : "data", protocolText: "MIFARE Ultralight", body: [UInt8](frame)
            )
        } else {
            sorted = .data(frame, RFProtocol.iso14443A.name)
        }
        lastText = sorted.protocolText
        return sorted
    }

    private var isSelected: Bool { if case .selected = phase { true } else { false } }

    private mutating func answer(_ frame: ArraySlice<UInt8>) -> SortedFrame {
        guard let first = frame.first else { return .data(frame, RFProtocol.iso14443A.name) }
        switch phase {
        case .requested where frame.count == 2: break
        case .anticollision where (1...5).contains(frame.count): break
        case .selecting where frame.count == 3 && FrameChecksum.endsWithCRCA(frame):
            // Bit 3 of SAK: the UID is not complete, another cascade level follows.
            phase = first & 0x04 != 0 ? .anticollision : .selected(first)
        case .rats where frame.count == Int(first) + 2: phase = .blocks
        case .blocks where Self.isBlock(first, isAfterATS: true): break
        case .encrypted: return .data(frame, "MIFARE Classic")
        default:
            // Wireshark's `mifare` takes the first octet of an answer for a command.
            return .data(frame, lastText ?? RFProtocol.iso14443A.name)
        }
        return .iso14443(frame, isAnswer: true)
    }

    /// Whether `octet` can be the protocol control byte of ISO/IEC 14443-4 7.1.1, or a PPS (5.3).
    static func isBlock(_ octet: UInt8, isAfterATS: Bool) -> Bool {
        let isI = octet & 0xE2 == 0x02
        let isR = octet & 0xE6 == 0xA2
        let isS = octet & 0xC7 == 0xC2
        return isI || isR || isS || (isAfterATS && octet & 0xF0 == 0xD0)
    }
}

/// Follows the states of a type B card (ISO/IEC 14443-3 7).
///
/// HLTB and its answer stand as `data`: Wireshark takes them for HLTA, with a wrong checksum.
struct TypeBSorter {
    private enum Phase { case unknown, requested, attributed, blocks }

    private var phase = Phase.unknown

    mutating func sort(_ frame: ArraySlice<UInt8>, isAnswer: Bool) -> SortedFrame {
        let isKnown = isAnswer ? answer(frame) : command(frame)
        return isKnown ? .iso14443(frame, isAnswer: isAnswer) : .data(frame, RFProtocol.iso14443B.name)
    }

    private mutating func command(_ frame: ArraySlice<UInt8>) -> Bool {
        let isChecked = FrameChecksum.endsWithCRCB(frame)
        switch (frame.first, frame.count) {
        case (0x05, 5) where isChecked: phase = .requested
        case (0x1D, 11...) where isChecked: phase = .attributed
        case (0x50, 7) where isChecked:
            phase = .unknown
            return false
        case (let first?, _) where phase == .blocks: return TypeASorter.isBlock(first, isAfterATS: false)
        case (let first?, _) where phase == .unknown && isChecked && [0x02, 0x03, 0x0A, 0x0B].contains(first): phase = .blocks
        default: return false
        }
        return true
    }

    private mutating func answer(_ frame: ArraySlice<UInt8>) -> Bool {
        let isChecked = FrameChecksum.endsWithCRCB(frame)
        switch phase {
        case .requested: return frame.first == 0x50 && frame.count >= 14
        case .attributed:
            guard isChecked else { return false }
            phase = .blocks
            return true
        case .blocks: return frame.first.map { TypeASorter.isBlock($0, isAfterATS: false) } ?? false
        case .unknown: return false
        }
    }
}
