// SPDX-License-Identifier: MIT

import CardCrypto

/// One of the three secure channels, as the reader has it. A value: a command is sealed, its answer opened, and nothing is sent here.
enum DESFireChannel: Sendable {
    case d40(D40Channel)
    case ev1(EV1Channel)
    case ev2(EV2Channel)

    /// The parameters to send: what follows the command code.
    mutating func seal(_ request: DESFireRequest) throws(DESFireChannelError) -> [UInt8] {
        switch self {
        case .d40(let channel): return try channel.seal(request)
        case .ev1(var channel):
            defer { self = .ev1(channel) }
            return try channel.seal(request)
        case .ev2(var channel):
            defer { self = .ev2(channel) }
            return try channel.seal(request)
        }
    }

    /// The data inside the answer to the request that was sealed last.
    ///
    /// - Parameters:
    ///   - answer: the data of all frames.
    ///   - status: the status octet of the last.
    mutating func open(
        _ request: DESFireRequest, _ answer: [UInt8], status: UInt8
    ) throws(DESFireChannelError) -> [UInt8] {
        let data: [UInt8]
        switch self {
        case .d40(let channel): data = try channel.open(request, answer)
        case .ev1(var channel):
            defer { self = .ev1(channel) }
            data = try channel.open(request, answer, status: status)
        case .ev2(var channel):
            defer { self = .ev2(channel) }
            data = try channel.open(request, answer, status: status)
        }
        if let length = request.answerLength, data.count != length {
            throw DESFireChannelError(.dataLength, "\(data.count) bytes came, \(length) were asked for")
        }
        return data
    }
}

/// The data and the MAC at the end of an answer.
func split(_ answer: [UInt8], macLength: Int) throws(DESFireChannelError) -> (data: [UInt8], mac: [UInt8]) {
    guard answer.count >= macLength else {
        throw DESFireChannelError(.macMissing, "the answer has \(answer.count) bytes and no MAC")
    }
    return (Array(answer.dropLast(macLength)), Array(answer.suffix(macLength)))
}

func requireEqual(_ mac: [UInt8], _ expected: [UInt8]) throws(DESFireChannelError) {
    guard equalInConstantTime(mac, expected) else {
        throw DESFireChannelError(.macWrong, "the MAC of the answer is wrong")
    }
}

func zeroPadded(_ data: [UInt8], to block: Int) -> [UInt8] {
    let length = data.isEmpty ? block : (data.count + block - 1) / block * block
    return data + [UInt8](repeating: 0, count: length - data.count)
}

/// The data of a deciphered answer: data, checksum, padding.
///
/// A card pads with zeros where the reader said how much it wants, and with `80` and zeros where it did not. What is left of it
/// after the checksum must be one or the other; anything else is an answer that was tampered with.
func checkedData(
    _ plain: [UInt8], _ length: Int?, blockLength: Int, checksumLength: Int, _ checksum: ([UInt8]) -> [UInt8]
) throws(DESFireChannelError) -> [UInt8] {
    func data(of count: Int, padding isPadding: (ArraySlice<UInt8>) -> Bool) -> [UInt8]? {
        guard count >= 0, count + checksumLength <= plain.count else { return nil }
        let data = Array(plain[..<count])
        let rest = plain[(count + checksumLength)...]
        guard isPadding(rest), equalInConstantTime(checksum(data), Array(plain[count..<count + checksumLength])) else {
            return nil
        }
        return data
    }
    func isZeros(_ rest: ArraySlice<UInt8>) -> Bool { rest.allSatisfy { $0 == 0 } }
    func isMarked(_ rest: ArraySlice<UInt8>) -> Bool { rest.first == 0x80 && isZeros(rest.dropFirst()) }
    if let length {
        if let data = data(of: length, padding: { isZeros($0) || isMarked($0) }) { return data }
        throw DESFireChannelError(.checksumWrong, "the checksum inside the cryptogram is wrong")
    }
    let longest = plain.count - checksumLength
    let shortest = max(0, longest - blockLength)
    guard longest >= 0 else { throw DESFireChannelError(.cryptogramLength, "a cryptogram of \(plain.count) bytes") }
    if let unpadded = Padding.unpad(plain),
        let data = data(of: unpadded.count - checksumLength, padding: isMarked)
    {
        return data
    }
    // The shortest that fits: a CRC over data and its own checksum is zero, as the padding is.
    for count in shortest...longest {
        if let data = data(of: count, padding: isZeros) { return data }
    }
    throw DESFireChannelError(.checksumWrong, "the checksum inside the cryptogram is wrong")
}

/// Runs cipher work; libcrypto's refusals end the channel as any other fault does.
func crypto<Result>(_ work: () throws(CryptoError) -> Result) throws(DESFireChannelError) -> Result {
    do {
        return try work()
    } catch {
        throw DESFireChannelError(.cryptography, error.detail)
    }
}
