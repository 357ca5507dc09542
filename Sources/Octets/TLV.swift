// SPDX-License-Identifier: MIT

/// One BER-TLV data object (ISO/IEC 7816-4 5.2.2) with the place it was read from.
public struct TLV: Sendable, Equatable {
    /// The tag octets read as one number, most significant first: `0x5F1F`, `0x87`.
    public let tag: UInt32
    /// The value octets, a slice of what was parsed.
    public let value: ArraySlice<UInt8>
    /// Where the tag begins, in octets from the start of what was parsed.
    public let offset: Int
    /// Tag and length octets together.
    public let headerLength: Int

    /// Whether bit 6 of the first tag octet says that the value holds data objects.
    public var isConstructed: Bool {
        var first = tag
        while first > 0xFF { first >>= 8 }
        return first & 0x20 != 0
    }

    /// The data objects inside the value.
    public func children(_ rules: TLVRules = TLVRules()) throws(TLVError) -> [TLV] { try TLV.parse(value, rules) }

    /// Parses `octets` as a run of data objects.
    ///
    /// - Throws: ``TLVError`` with the offset of the fault from the start of `octets`.
    public static func parse(_ octets: ArraySlice<UInt8>, _ rules: TLVRules = TLVRules()) throws(TLVError) -> [TLV] {
        var objects: [TLV] = []
        var index = octets.startIndex
        while true {
            index = rules.skipFiller(in: octets, from: index)
            guard index < octets.endIndex else { return objects }
            let object = try one(in: octets, at: index)
            objects.append(object)
            index += object.headerLength + object.value.count
        }
    }

    public static func parse(_ octets: [UInt8], _ rules: TLVRules = TLVRules()) throws(TLVError) -> [TLV] {
        try parse(octets[...], rules)
    }

    /// The first data object of `octets`; what follows it is not looked at.
    public static func first(in octets: ArraySlice<UInt8>) throws(TLVError) -> TLV { try one(in: octets, at: octets.startIndex) }

    /// Tag, header length and value length of the object that begins at the start of `octets`, although its value may
    /// not be there whole: what a file's first four octets tell. Nil when even the header is cut off.
    public static func header(in octets: ArraySlice<UInt8>) throws(TLVError) -> (
        tag: UInt32, headerLength: Int, valueLength: Int
    )? {
        do {
            return try readHeader(in: octets, at: octets.startIndex)
        } catch  where error.code == .truncated {
            return nil
        }
    }

    /// The first object with `tag` in `octets`, looking into constructed values in the order of their octets.
    public static func find(_ tag: UInt32, in octets: ArraySlice<UInt8>, depth: Int = 16) -> TLV? {
        guard depth > 0, let objects = try? parse(octets) else { return nil }
        for object in objects {
            if object.tag == tag { return object }
            if object.isConstructed, let inner = find(tag, in: object.value, depth: depth - 1) { return inner }
        }
        return nil
    }

    /// The encoding of one data object in the shortest definite form.
    public static func encode(_ tag: UInt32, _ value: some Collection<UInt8>) -> [UInt8] {
        var octets: [UInt8] = []
        octets.reserveCapacity(value.count + 8)
        var started = false
        for shift in stride(from: UInt32(24), through: 0, by: -8) {
            let octet = UInt8(truncatingIfNeeded: tag >> shift)
            if octet != 0 || started || shift == 0 {
                octets.append(octet)
                started = true
            }
        }
        octets += lengthOctets(value.count)
        octets += value
        return octets
    }

    /// The shortest definite length octets for `length` (X.690 8.1.3).
    public static func lengthOctets(_ length: Int) -> [UInt8] {
        if length < 0x80 { return [UInt8(truncatingIfNeeded: length)] }
        var octets: [UInt8] = []
        var rest = length
        while rest > 0 {
            octets.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return [0x80 | UInt8(truncatingIfNeeded: octets.count)] + octets
    }

    private static func one(in octets: ArraySlice<UInt8>, at start: Int) throws(TLVError) -> TLV {
        let (tag, headerLength, length) = try readHeader(in: octets, at: start)
        let valueStart = start + headerLength
        let present = octets.endIndex - valueStart
        guard length <= present else {
            throw TLVError(code: .valueTruncated(wanted: length, present: present), offset: valueStart - octets.startIndex)
        }
        return TLV(
            tag: tag,
            value: octets[valueStart..<valueStart + length],
            offset: start - octets.startIndex,
            headerLength: headerLength
        )
    }

    private static func readHeader(
        in octets: ArraySlice<UInt8>,
        at start: Int
    ) throws(TLVError) -> (tag: UInt32, headerLength: Int, valueLength: Int) {
        var index = start
        func next() throws(TLVError) -> UInt8 {
            guard index < octets.endIndex else { throw TLVError(code: .truncated, offset: index - octets.startIndex) }
            defer { index += 1 }
            return octets[index]
        }
        let first = try next()
        var tag = UInt32(first)
        if first & 0x1F == 0x1F {
            var octet: UInt8
            repeat {
                octet = try next()
                guard tag <= 0x00FF_FFFF else { throw TLVError(code: .tagTooLong, offset: start - octets.startIndex) }
                tag = tag << 8 | UInt32(octet)
            } while octet & 0x80 != 0
        }
        let lengthOffset = index - octets.startIndex
        let initial = try next()
        if initial < 0x80 { return (tag, index - start, Int(initial)) }
        let count = Int(initial & 0x7F)
        guard count > 0 else { throw TLVError(code: .indefiniteLength, offset: lengthOffset) }
        guard count <= 4 else { throw TLVError(code: .lengthTooLong(octets: count), offset: lengthOffset) }
        var length = 0
        for _ in 0..<count { length = length << 8 | Int(try next()) }
        return (tag, index - start, length)
    }
}

/// What a run of data objects may hold beside them.
public struct TLVRules: Sendable {
    /// Octets `00` before, between and after objects are filler (ISO/IEC 7816-4 5.2.2.1), and so is `FF` when nothing
    /// but `FF` is left: `FF` also begins real tags (`FF10`).
    public var allowsFiller = true

    public init(allowsFiller: Bool = true) { self.allowsFiller = allowsFiller }

    func skipFiller(in octets: ArraySlice<UInt8>, from start: Int) -> Int {
        guard allowsFiller else { return start }
        var index = start
        while index < octets.endIndex, octets[index] == 0x00 { index += 1 }
        if index < octets.endIndex, octets[index] == 0xFF, octets[index...].allSatisfy({ $0 == 0xFF }) { return octets.endIndex }
        return index
    }
}

/// What is wrong with a data object, and where. Equality is on the code.
public struct TLVError: CodedError {
    public enum Code: Sendable, Equatable {
        /// The octets end inside a tag or a length.
        case truncated
        /// The value is longer than what is left.
        case valueTruncated(wanted: Int, present: Int)
        /// A tag of more than four octets.
        case tagTooLong
        /// Length octet `80`: not allowed between card and reader.
        case indefiniteLength
        /// More than four length octets.
        case lengthTooLong(octets: Int)
    }

    public let code: Code
    /// The place of the fault in octets from the start of what was parsed.
    public let offset: Int

    public init(code: Code, offset: Int) {
        self.code = code
        self.offset = offset
    }

    public var description: String {
        switch code {
        case .truncated: "the octets end inside a tag or length, at offset \(offset)"
        case .valueTruncated(let wanted, let present): "a value of \(wanted) octets at offset \(offset), \(present) are there"
        case .tagTooLong: "a tag of more than four octets at offset \(offset)"
        case .indefiniteLength: "an indefinite length at offset \(offset)"
        case .lengthTooLong(let octets): "\(octets) length octets at offset \(offset)"
        }
    }
}
