// SPDX-License-Identifier: MIT

import FoundationEssentials
import TagTransport

/// What went wrong with a file, for the model, the caller and whoever looks on.
extension PassportReading {
    mutating func note(_ error: any Error, _ file: DataGroupId, _ plan: FileReadPlan) {
        var status = DataGroupReadStatus.failed
        var kind = PassportProblem.Kind.broken
        var code: String?
        var side = FaultSide.card
        let facing: any Error
        var detail: String
        switch error {
        case let error as FileReadError:
            detail = error.detail
            if case .refused(let word) = error.code {
                kind = .refused
                code = hexText(word)
                status = Self.status(ofRefusal: word)
                facing = NFCError.dataGroupNotAvailable(error.detail)
            } else {
                facing = NFCError.dataGroupParseFailed(error.detail)
            }
        case let error as SecureMessagingError:
            kind = .channel
            detail = "\(file.displayName): \(error.detail)"
            facing = NFCError.secureMessagingError(detail)
            ending = facing
        default:
            facing = NFCError.facing(error)
            kind = .lost
            code = (facing as? NFCError)?.caseName
            side = .outside
            detail = "\(file.displayName): \(facing)"
            ending = facing
        }
        statuses[file] = status
        failures[file] = facing
        firstFailure = firstFailure ?? facing
        problems.append(
            PassportProblem(
                dataGroup: file, kind: kind, code: code, side: side, detail: detail,
                bytesRead: plan.octets.count, bytesTotal: plan.total))
        let place = plan.total.map { " at \(grouped(plan.octets.count)) of \(bytesText($0))" } ?? ""
        let refusal = kind == .refused ? "refused, \(code ?? "")" : "FAILED"
        show(.read, file.displayName, .failed, refusal + place, plan)
    }

    static func status(ofRefusal word: UInt16) -> DataGroupReadStatus {
        switch word {
        case 0x6A82, 0x6A83, 0x6A88: .notPresent
        case 0x6982, 0x6983, 0x6985, 0x6986: .unavailable
        default: .failed
        }
    }
}
