// SPDX-License-Identifier: MIT

import TagTransport

/// What a card has been told that decides what a command means: the application and the file that are selected, and what was
/// proven to it. Equal commands in another context are other commands.
struct CardContext: Sendable, Hashable {
    /// The application, then files that may be directories.
    private var base: [[UInt8]] = []
    private var file: [UInt8] = []
    private var access: Set<[UInt8]> = []
    /// An authentication of DESFire that has begun: its command and key number.
    private var begun: [UInt8] = []

    /// Directories below each other that are told apart.
    private static let deepest = 8

    /// Selections that led to a file which was then read, so that it is no directory.
    typealias Files = Set<[UInt8]>

    /// Takes in a command that was answered.
    mutating func take(_ command: [UInt8], status: UInt16?, files: Files) {
        guard let command = try? CommandAPDU(bytes: command), let status else { return }
        let data = command.data.map { [UInt8]($0) } ?? []
        if command.cla == 0x90 { return desfire(command.ins, data, status) }
        guard Self.isSuccess(status) else { return }
        switch command.ins {
        case 0xA4: select([command.p1] + data, files)
        // ISO/IEC 7816-4: VERIFY, EXTERNAL and GENERAL AUTHENTICATE, and what sets up an authentication.
        case 0x20 where !data.isEmpty, 0x21, 0x82, 0x86, 0x87: access.insert([command.ins, command.p1, command.p2])
        case 0xB0, 0xD6: if command.p1 & 0x80 != 0 { file = [0xB0, command.p1 & 0x1F] }
        default: break
        }
    }

    private mutating func select(_ key: [UInt8], _ files: Files) {
        switch key.first {
        case 0x04, 0x08: (base, file) = ([key], [])
        case 0x00 where key.count == 1 || key.dropFirst().elementsEqual([0x3F, 0x00]): (base, file) = ([key], [])
        case 0x02, 0x09: file = key
        default:
            if files.contains(key) {
                file = key
            } else {
                // Selecting the directory at hand again leads nowhere.
                if base.last != key { base.append(key) }
                if base.count > Self.deepest { base.remove(at: 1) }
                file = []
            }
        }
    }

    private mutating func desfire(_ ins: UInt8, _ data: [UInt8], _ status: UInt16) {
        switch (ins, status) {
        case (0x5A, 0x9100): (base, file, access) = ([data], [], [])
        case (0x0A, 0x91AF), (0x1A, 0x91AF), (0xAA, 0x91AF), (0x71, 0x91AF), (0x77, 0x91AF): begun = [ins] + data.prefix(1)
        case (0xAF, 0x9100) where !begun.isEmpty:
            access = [begun]
            begun = []
        case (0xAF, 0x91AF): break
        default: begun = []
        }
    }

    /// What of the context a command depends on: a selection not on the file before it, a password not on any file.
    func relevant(to command: [UInt8]) -> CardContext {
        guard command.count >= 4 else { return self }
        var context = self
        context.begun = command[0] == 0x90 ? begun : []
        switch (command[0], command[1]) {
        case (0x90, 0x5A): return CardContext()
        case (0x90, _): return context
        case (_, 0xA4):
            context.file = []
            let isMasterFile = command[2] == 0 && (command.count <= 5 || command[5...].starts(with: [0x3F, 0x00]))
            if command[2] == 0x04 || command[2] == 0x08 || isMasterFile { context.base = [] }
        case (_, 0x20), (_, 0x21), (_, 0x24), (_, 0x2C), (_, 0x82), (_, 0x84), (_, 0x86), (_, 0x87), (_, 0x88), (_, 0xCA),
            (_, 0xCB), (_, 0x22):
            context.file = []
        case (_, 0xB0) where command[2] & 0x80 != 0: context.file = []
        default: break
        }
        return context
    }

    /// The card loses its power.
    mutating func reset() { self = CardContext() }

    /// The file at hand, whatever was proven.
    var place: CardContext {
        var place = self
        (place.access, place.begun) = ([], [])
        return place
    }

    /// The file with a short identifier in the application at hand.
    func place(short identifier: UInt8) -> CardContext {
        var place = place
        place.file = [0xB0, identifier]
        return place
    }

    /// What was proven, whatever file is at hand.
    var proven: CardContext {
        var proven = CardContext()
        proven.access = access
        return proven
    }

    static func isSuccess(_ status: UInt16) -> Bool {
        status == 0x9000 || status == 0x9100 || status >> 8 == 0x61 || status >> 8 == 0x62 || status >> 8 == 0x9F
    }

    /// The selections after which the file at hand was read or written.
    static func files(_ exchanges: some Sequence<(command: [UInt8], status: UInt16?)>) -> Files {
        var files: Files = []
        var last: [UInt8] = []
        for (octets, status) in exchanges {
            guard let status, isSuccess(status), let command = try? CommandAPDU(bytes: octets) else { continue }
            switch command.ins {
            case 0xA4: last = [command.p1] + (command.data.map { [UInt8]($0) } ?? [])
            case 0xB0, 0xD6: if command.p1 & 0x80 == 0 { files.insert(last) }
            case 0xB1, 0xD7: if command.p1 == 0, command.p2 == 0 { files.insert(last) }
            case 0xB2, 0xDC: if command.p2 >> 3 == 0 { files.insert(last) }
            default: break
            }
        }
        return files
    }
}

extension RecordedSession.Answer {
    /// The status word of a response.
    var status: UInt16? {
        guard case .response(let row) = self, row.octets.count >= 2 else { return nil }
        let end = row.octets.count
        return UInt16(row.octets[end - 2]) << 8 | UInt16(row.octets[end - 1])
    }
}
