// SPDX-License-Identifier: MIT

public import TagTransport

/// The host's side of an open secure channel: a pure state machine over commands and responses.
///
/// Each command is wrapped once and its response unwrapped once, in turn. After anything is thrown by ``unwrap(_:)`` the channel is not
/// to be used any more.
public protocol SecureChannel: Sendable {
    var level: SecurityLevel { get }
    /// `SCP02` or `SCP03`.
    var name: String { get }

    /// EXTERNAL AUTHENTICATE, with which the channel begins.
    mutating func externalAuthenticate() throws(GlobalPlatformError) -> CommandAPDU

    /// The command as it travels: class, C-MAC and encryption added.
    mutating func wrap(_ command: CommandAPDU) throws(GlobalPlatformError) -> CommandAPDU

    /// The response without what protects it.
    mutating func unwrap(_ response: ResponseAPDU) throws(GlobalPlatformError) -> ResponseAPDU

    /// A key as PUT KEY and STORE DATA carry it, under the key encryption key (GPC E.4.7, Amendment D 6.2.8).
    func sealKey(_ key: [UInt8]) throws(GlobalPlatformError) -> [UInt8]
}

/// What a card says of the channel that it is ready for: the data field of the response to INITIALIZE UPDATE.
public struct ChannelOffer: Sendable, Hashable {
    /// Ten octets.
    public let diversificationData: [UInt8]
    /// Key version number of the set that the card took.
    public let keyVersion: UInt8
    /// 2 or 3.
    public let protocolNumber: UInt8
    /// The option `i` that SCP03 tells; nil for SCP02.
    public let option: UInt8?
    /// Six octets of SCP02, eight or sixteen of SCP03.
    public let cardChallenge: [UInt8]
    /// What proves the card's keys.
    public let cardCryptogram: [UInt8]
    /// Two octets for SCP02; three for SCP03 with a pseudo-random challenge, else empty. Most significant first.
    public let sequenceCounter: [UInt8]

    /// - Throws: ``GlobalPlatformError``: `protocolNotSupported`, or `malformedResponse` when the length is not the protocol's.
    public init(parsing data: [UInt8]) throws(GlobalPlatformError) {
        guard data.count >= 13 else {
            throw GlobalPlatformError(
                .malformedResponse, command: "INITIALIZE UPDATE", detail: "\(data.count) bytes; 28 and more were expected")
        }
        diversificationData = Array(data[..<10])
        keyVersion = data[10]
        protocolNumber = data[11]
        func lengthError() -> GlobalPlatformError {
            GlobalPlatformError(
                .malformedResponse, command: "INITIALIZE UPDATE", detail: "\(data.count) bytes are no answer of SCP0\(data[11])")
        }
        switch protocolNumber {
        case 2:
            guard data.count == 28 else { throw lengthError() }
            option = nil
            sequenceCounter = Array(data[12..<14])
            cardChallenge = Array(data[14..<20])
            cardCryptogram = Array(data[20..<28])
        case 3:
            let i = data[12]
            let length = i & 0x01 == 0 ? 8 : 16
            let counterLength = i & 0x10 == 0 ? 0 : 3
            let end = 13 + 2 * length
            guard data.count == end + counterLength else { throw lengthError() }
            option = i
            cardChallenge = Array(data[13..<13 + length])
            cardCryptogram = Array(data[13 + length..<end])
            sequenceCounter = Array(data[end...])
        default:
            throw GlobalPlatformError(
                .protocolNotSupported, command: "INITIALIZE UPDATE", detail: "secure channel protocol \(protocolNumber)")
        }
    }
}
