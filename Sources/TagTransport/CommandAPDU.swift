// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import Octets

/// A command APDU in any of the seven cases of ISO/IEC 7816-3 12.1.3: 1, 2S, 3S, 4S, 2E, 3E, 4E.
///
/// `init(bytes:)` and ``bytes`` are inverse: what was parsed is written again octet by octet, the long form of a short
/// length included.
public struct CommandAPDU: Sendable, Hashable {
    /// How the lengths are written.
    public enum Form: Sendable, Hashable {
        /// Lc and Le of one octet; `00` as Le means 256.
        case short
        /// Lc of three octets; Le of two octets, three without a data field; `0000` means 65,536.
        case extended
    }

    public let cla: UInt8
    public let ins: UInt8
    public let p1: UInt8
    public let p2: UInt8
    /// The data field; nil when there is none. Never empty.
    public let data: Data?
    /// Ne, the most octets wanted back: 1...65,536, or nil when no Le field is sent.
    public let ne: Int?
    public let form: Form

    /// A command in the shortest form that holds it.
    ///
    /// - Parameters:
    ///   - data: up to 65,535 octets; nil and empty both mean no data field.
    ///   - ne: 1...65,536, or nil for no Le field.
    ///   - form: `.extended` to write the long form although the short one would do.
    /// - Throws: ``APDUError`` when a length is out of range.
    public init(
        cla: UInt8, ins: UInt8, p1: UInt8, p2: UInt8, data: Data? = nil, ne: Int?, form: Form? = nil
    ) throws(APDUError) {
        let count = data?.count ?? 0
        guard count <= 65_535 else { throw APDUError(code: .dataTooLong(count), offset: 4) }
        if let ne, !(1...65_536).contains(ne) { throw APDUError(code: .expectedLengthOutOfRange(ne), offset: 4) }
        let needsExtended = count > 255 || (ne ?? 0) > 256
        if form == .short, needsExtended { throw APDUError(code: .doesNotFitShortForm, offset: 4) }
        self.init(
            cla: cla, ins: ins, p1: p1, p2: p2, field: data, ne: ne,
            form: needsExtended || form == .extended ? .extended : .short
        )
    }

    /// A command with a Le field of one octet, as the 1.x interface has it: `00` means 256.
    ///
    /// A data field over 255 octets makes it extended. Over 65,535 octets cannot be a command: only the first 65,535 would
    /// fit, so ``init(cla:ins:p1:p2:data:ne:form:)``, which throws, is the one to call with data from outside.
    public init(cla: UInt8, ins: UInt8, p1: UInt8, p2: UInt8, data: Data? = nil, le: UInt8? = nil) {
        let field = data.map { $0.prefix(65_535) }
        self.init(
            cla: cla, ins: ins, p1: p1, p2: p2, field: field, ne: le.map { $0 == 0 ? 256 : Int($0) },
            form: (field?.count ?? 0) > 255 ? .extended : .short
        )
    }

    private init(cla: UInt8, ins: UInt8, p1: UInt8, p2: UInt8, field: Data?, ne: Int?, form: Form) {
        self.cla = cla
        self.ins = ins
        self.p1 = p1
        self.p2 = p2
        self.data = field.flatMap { $0.isEmpty ? nil : rebased($0) }
        self.ne = ne
        // Case 1 has no lengths, so it has one form only.
        self.form = self.data == nil && ne == nil ? .short : form
    }

    /// Le as one octet, the way the 1.x interface gives it; nil without a Le field. An extended Le gives its low octet.
    public var le: UInt8? { ne.map { UInt8(truncatingIfNeeded: $0) } }

    /// The case of ISO/IEC 7816-3 12.1.3: "1", "2S", "3E" and so on.
    public var caseName: String {
        let suffix = form == .short ? "S" : "E"
        return switch (data == nil, ne == nil) {
        case (true, true): "1"
        case (true, false): "2" + suffix
        case (false, true): "3" + suffix
        case (false, false): "4" + suffix
        }
    }

    /// The octets as they travel.
    public var bytes: Data { Data(octets) }

    /// The octets as they travel.
    public var octets: [UInt8] {
        var octets: [UInt8] = [cla, ins, p1, p2]
        octets.reserveCapacity(12 + (data?.count ?? 0))
        switch form {
        case .short:
            if let data {
                octets.append(UInt8(truncatingIfNeeded: data.count))
                octets.append(data)
            }
            if let ne { octets.append(UInt8(truncatingIfNeeded: ne)) }
        case .extended:
            octets.append(0)
            if let data {
                octets.append(UInt8(truncatingIfNeeded: data.count >> 8))
                octets.append(UInt8(truncatingIfNeeded: data.count))
                octets.append(data)
            }
            if let ne {
                octets.append(UInt8(truncatingIfNeeded: ne >> 8))
                octets.append(UInt8(truncatingIfNeeded: ne))
            }
        }
        return octets
    }

    /// Parses the octets of a command.
    ///
    /// - Throws: ``APDUError`` with the offset of the octet at fault when no case has such octets.
    public init(bytes: some Collection<UInt8>) throws(APDUError) {
        let octets = Array(bytes)
        guard octets.count >= 4 else { throw APDUError(code: .headerTruncated(present: octets.count), offset: octets.count) }
        let body = octets.count - 4
        func command(_ data: Range<Int>?, _ ne: Int?, _ form: Form) -> CommandAPDU {
            CommandAPDU(
                cla: octets[0], ins: octets[1], p1: octets[2], p2: octets[3], field: data.map { Data(octets[$0]) }, ne: ne,
                form: form
            )
        }
        func ne(_ high: UInt8, _ low: UInt8) -> Int {
            let value = Int(high) << 8 | Int(low)
            return value == 0 ? 65_536 : value
        }
        if body == 0 {
            self = command(nil, nil, .short)
            return
        }
        let p3 = octets[4]
        if body == 1 {
            self = command(nil, p3 == 0 ? 256 : Int(p3), .short)
            return
        }
        if p3 != 0 {
            let lc = Int(p3)
            switch body - 1 - lc {
            case 0: self = command(5..<5 + lc, nil, .short)
            case 1: self = command(5..<5 + lc, octets[5 + lc] == 0 ? 256 : Int(octets[5 + lc]), .short)
            case ..<0: throw APDUError(code: .dataTruncated(wanted: lc, present: body - 1), offset: 4)
            default: throw APDUError(code: .surplus(octets: body - 2 - lc), offset: 6 + lc)
            }
            return
        }
        // A first length octet of 00 begins an extended length of three octets; never Lc 0 (ISO/IEC 7816-3 12.1.3).
        guard body >= 3 else { throw APDUError(code: .lengthTruncated, offset: octets.count) }
        if body == 3 {
            self = command(nil, ne(octets[5], octets[6]), .extended)
            return
        }
        let lc = Int(octets[5]) << 8 | Int(octets[6])
        guard lc > 0 else { throw APDUError(code: .emptyExtendedData, offset: 5) }
        switch body - 3 - lc {
        case 0: self = command(7..<7 + lc, nil, .extended)
        case 2: self = command(7..<7 + lc, ne(octets[7 + lc], octets[8 + lc]), .extended)
        case ..<0: throw APDUError(code: .dataTruncated(wanted: lc, present: body - 3), offset: 5)
        case 1: throw APDUError(code: .lengthTruncated, offset: 7 + lc)
        default: throw APDUError(code: .surplus(octets: body - 5 - lc), offset: 9 + lc)
        }
    }
}

/// A response APDU: an optional data field and the status word (ISO/IEC 7816-4 5.1).
public struct ResponseAPDU: Sendable, Hashable {
    public let data: Data
    public let sw1: UInt8
    public let sw2: UInt8

    public init(data: Data = Data(), sw1: UInt8, sw2: UInt8) {
        self.data = rebased(data)
        self.sw1 = sw1
        self.sw2 = sw2
    }

    public init(data: Data = Data(), statusWord: UInt16) {
        self.init(data: data, sw1: UInt8(truncatingIfNeeded: statusWord >> 8), sw2: UInt8(truncatingIfNeeded: statusWord))
    }

    /// Parses the octets of a response; nil when there are fewer than two.
    public init?(rawResponse: Data) { try? self.init(bytes: rawResponse) }

    /// Parses the octets of a response.
    ///
    /// - Throws: ``APDUError`` when there is no whole status word.
    public init(bytes: some Collection<UInt8>) throws(APDUError) {
        guard bytes.count >= 2 else { throw APDUError(code: .statusTruncated(present: bytes.count), offset: bytes.count) }
        let octets = Array(bytes)
        self.init(data: Data(octets.dropLast(2)), sw1: octets[octets.count - 2], sw2: octets[octets.count - 1])
    }

    /// SW1-SW2 as one number.
    public var statusWord: UInt16 { UInt16(sw1) << 8 | UInt16(sw2) }
    /// Whether the status word is `9000`.
    public var isSuccess: Bool { statusWord == 0x9000 }
    /// Whether more octets wait for GET RESPONSE (SW1 `61`).
    public var needsGetResponse: Bool { sw1 == 0x61 }
    /// Whether a DESFire card has another frame (`91AF`).
    public var hasMoreFrames: Bool { statusWord == 0x91AF }
    /// The octets as they travel.
    public var bytes: Data { data + [sw1, sw2] }
    /// The octets as they travel.
    public var octets: [UInt8] {
        var octets: [UInt8] = []
        octets.reserveCapacity(data.count + 2)
        octets.append(data)
        octets.append(sw1)
        octets.append(sw2)
        return octets
    }
}

/// The same octets counted from 0: a slice of other octets need not begin there.
private func rebased(_ data: Data) -> Data { data.startIndex == 0 ? data : Data(data) }

extension [UInt8] {
    /// Appends in one piece; `+=` goes through the iterator of `Data`.
    fileprivate mutating func append(_ data: Data) { data.withUnsafeBytes { append(contentsOf: $0) } }
}

/// Why octets are not an APDU, and the octet at fault. Equality is on the code.
public struct APDUError: CodedError {
    public enum Code: Sendable, Equatable {
        case headerTruncated(present: Int)
        case lengthTruncated
        case dataTruncated(wanted: Int, present: Int)
        case emptyExtendedData
        case surplus(octets: Int)
        case dataTooLong(Int)
        case expectedLengthOutOfRange(Int)
        case doesNotFitShortForm
        case statusTruncated(present: Int)
    }

    public let code: Code
    /// The octet at fault, counted from 0.
    public let offset: Int

    public init(code: Code, offset: Int) {
        self.code = code
        self.offset = offset
    }

    public var description: String {
        switch code {
        case .headerTruncated(let present): "a command has at least 4 bytes, \(present) are there"
        case .lengthTruncated: "the length field is cut off at byte \(offset)"
        case .dataTruncated(let wanted, let present): "byte \(offset) says \(wanted) bytes of data, \(present) follow"
        case .emptyExtendedData: "byte \(offset): an extended Lc of 0"
        case .surplus(let octets): "\(octets) bytes too many from byte \(offset) on"
        case .dataTooLong(let count): "a data field of \(count) bytes; 65,535 is the most"
        case .expectedLengthOutOfRange(let ne): "\(ne) expected bytes; 1 to 65,536 can be asked for"
        case .doesNotFitShortForm: "the lengths do not fit one byte each"
        case .statusTruncated(let present): "a response has at least 2 bytes, \(present) are there"
        }
    }
}
