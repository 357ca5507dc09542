// SPDX-License-Identifier: MIT

import TraceFile

/// Puts rows of one exchange together, in the order in which the exchanges began.
///
/// Two readers may speak at once, so an exchange is open until several others have begun.
public struct ExchangeGroups: Sendable {
    private var groups: [[DecodedRow]] = []
    private static let open = 8

    public init() {}

    /// Takes in a row and gives the exchanges that are finished by it.
    public mutating func push(_ row: DecodedRow) -> [[DecodedRow]] {
        if let packet = row.row.packetID, let place = groups.lastIndex(where: { $0.first?.row.packetID == packet }) {
            groups[place].append(row)
            return []
        }
        groups.append([row])
        return groups.count > Self.open ? [groups.removeFirst()] : []
    }

    /// Gives the exchanges that are left.
    public mutating func end() -> [[DecodedRow]] {
        defer { groups = [] }
        return groups
    }
}
