// SPDX-License-Identifier: MIT

/// What a file that is no pcapng capture may be, told by its first octets.
enum CaptureGuess {
    /// Why a file that begins with `head` cannot be read as a capture; nil when it can.
    static func refusal(_ head: [UInt8], path: String, failure: OctetSource.Failure?) -> TraceFileError? {
        let magic: [UInt8] = [0x0A, 0x0D, 0x0D, 0x0A]
        if head.isEmpty {
            switch failure {
            case .unreadable(let number): return TraceFileError(.cannotRead(errno: number), path: path)
            case .badCompression:
                return TraceFileError(.notACapture(firstBytes: [0x1F, 0x8B], guess: "damaged gzip"), path: path)
            case nil: return TraceFileError(.empty, path: path)
            }
        }
        // A file that ends inside the magic number is a capture that was cut short.
        if head.starts(with: magic) || magic.starts(with: head) { return nil }
        return TraceFileError(.notACapture(firstBytes: [UInt8](head.prefix(4)), guess: guess(head)), path: path)
    }

    static func guess(_ head: [UInt8]) -> String? {
        for (start, name) in known where head.starts(with: start) { return name }
        return head.allSatisfy(isText) ? "text" : nil
    }

    private static func isText(_ octet: UInt8) -> Bool {
        (0x20...0x7E).contains(octet) || octet == 0x0A || octet == 0x0D || octet == 0x09
    }

    private static let known: [([UInt8], String)] = [
        ([0xD4, 0xC3, 0xB2, 0xA1], "classic pcap"),
        ([0xA1, 0xB2, 0xC3, 0xD4], "classic pcap"),
        ([0x4D, 0x3C, 0xB2, 0xA1], "classic pcap"),
        ([0xA1, 0xB2, 0x3C, 0x4D], "classic pcap"),
        ([0x0A, 0x0A], "pcapng that a text-mode copy spoiled"),
        ([0x0D, 0x0A, 0x0D], "pcapng that a text-mode copy spoiled"),
        ([0xFF, 0xD8, 0xFF], "JPEG"),
        ([0x89, 0x50, 0x4E, 0x47], "PNG"),
        ([0x47, 0x49, 0x46, 0x38], "GIF"),
        ([0x25, 0x50, 0x44, 0x46], "PDF"),
        ([0x50, 0x4B, 0x03, 0x04], "ZIP"),
        ([0x1F, 0x8B], "gzip"),
        ([0x42, 0x5A, 0x68], "bzip2"),
        ([0xFD, 0x37, 0x7A, 0x58], "xz"),
        ([0x28, 0xB5, 0x2F, 0xFD], "zstd"),
        ([0x7F, 0x45, 0x4C, 0x46], "ELF program"),
        ([0x23, 0x21], "script"),
        ([0x7B], "JSON text"),
    ]
}
