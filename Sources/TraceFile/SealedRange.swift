// SPDX-License-Identifier: MIT

/// Octets of a row's body that stand as `00` because they are secret. A sealed row's comment names them:
/// `tapdeck sealed 5+8,13+2`, offset and length in octets from the first octet after the exported-PDU tags.
public struct SealedRange: Sendable, Hashable {
    public var offset: Int
    public var length: Int

    public init(offset: Int, length: Int) {
        self.offset = offset
        self.length = length
    }

    private static let words = "tapdeck sealed "

    /// The comment of a row with these ranges.
    public static func comment(_ ranges: [SealedRange]) -> String {
        words + ranges.map { "\($0.offset)+\($0.length)" }.joined(separator: ",")
    }

    /// The ranges that a comment names; nil when it is a comment of another kind.
    public static func parse(comment: String) -> [SealedRange]? {
        guard comment.hasPrefix(words) else { return nil }
        var ranges: [SealedRange] = []
        for part in comment.dropFirst(words.count).split(separator: ",", omittingEmptySubsequences: false) {
            let numbers = part.split(separator: "+", omittingEmptySubsequences: false)
            guard numbers.count == 2, let offset = UInt32(numbers[0]), let length = UInt32(numbers[1]), length > 0 else {
                return nil
            }
            ranges.append(SealedRange(offset: Int(offset), length: Int(length)))
        }
        return ranges
    }
}

extension TraceRow {
    /// The sealed ranges that the row's comments name, as far as they lie inside its body.
    public var sealedRanges: [SealedRange] { comments.sealedRanges(in: body.count) }
}

extension RowView {
    /// The sealed ranges that the row's comments name, as far as they lie inside its body.
    public var sealedRanges: [SealedRange] { hasComments ? comments.sealedRanges(in: bodyExtent.count) : [] }
}

extension [String] {
    fileprivate func sealedRanges(in count: Int) -> [SealedRange] {
        compactMap(SealedRange.parse).joined().filter { $0.offset <= count && $0.length <= count - $0.offset }
    }
}
