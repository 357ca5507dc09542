// SPDX-License-Identifier: MIT

import FoundationEssentials
import TagTransport

/// Lengths that fit the chip: what EF.ATR/INFO tells of them, and what is done when a chip loses its session over one.
extension PassportReading {
    /// Reads EF.ATR/INFO in the master file when a long file is wanted and the historical bytes say nothing of lengths (ICAO 9303-10
    /// 3.11.2). It has to be now: once the application is selected, the master file is out of reach.
    mutating func readCapabilities() async throws {
        guard longChunk == nil, link.takesExtendedLength == nil, request.dataGroups.contains(where: \.isLong) else { return }
        guard try await link.exchange(CommandAPDU(cla: 0, ins: 0xA4, p1: 0x02, p2: 0x0C, data: Data([0x2F, 0x01]))).isSuccess
        else { return }
        // Some data objects in a row, which no length stands before.
        var answer = try await link.exchange(CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: 0))
        if answer.sw1 == 0x6C {
            answer = try await link.exchange(CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: answer.sw2))
        }
        guard answer.isSuccess || answer.statusWord == 0x6282,
            let capabilities = try? CardCapabilities(attributes: Array(answer.data)), capabilities.supportsExtendedLength
        else { return }
        let longest = min(capabilities.longestResponse ?? Self.longChunk, capabilities.longestCommand ?? Self.longChunk)
        let room = min(Self.longChunk, longest - Self.protection)
        longChunk = room > 256 ? room : nil
    }

    /// Opens the chip once more when it ended the session over a length (field report E1: a bare `6700` to a long READ BINARY, and
    /// `6988` or `6700` to all that follows). What comes then is read in smaller pieces.
    ///
    /// - Returns: whether `channel` is open again. False leaves everything as it was.
    mutating func reopen(
        after error: any Error, in plan: FileReadPlan, _ channel: SecureMessagingTransport
    ) async throws -> Bool {
        // A counted password is not spent on this, nor what a terminal was let in for.
        guard !wasReopened, !request.access.isCounted, request.terminal == nil, case .ended = channel.state,
            case .bareStatusWord(let word)? = (error as? SecureMessagingError)?.code, let refused = plan.refusedLength,
            let chunk = plan.chunkAfter(word)
        else { return false }
        wasReopened = true
        show(.read, plan.name, .failed, "FAILED, 6700 to \(refused) bytes ended the session", plan)
        let before = report
        do {
            try await link.startOver()
            channel.restart(like: try await openChannel())
        } catch {
            let isTheChips = Self.belongsToTheCard(error) || error is PACEError || error is BasicAccessControlError
            guard isTheChips else { throw error }
            report = before
            return false
        }
        show(.access, "chip", .done, "opened again, for \(chunk) bytes at a time")
        learntChunk = chunk
        longChunk = nil
        return true
    }

    /// Octets that secure messaging adds to an answer at most, status word included.
    private static var protection: Int { 44 }
}

extension DataGroupId {
    /// Whether a file of this kind is worth commands of extended length: those with images.
    fileprivate var isLong: Bool {
        switch self {
        case .com, .sod, .dg1, .dg14, .dg15: false
        default: true
        }
    }
}
