// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// What a transport that holds a real connection can tell and do beyond exchanging commands.
///
/// Card flows do not need it; recording, replay and scripts do.
public protocol CardConnection: NFCTagTransport {
    /// The reader's name as its service gives it, or the virtual card's name.
    var readerName: String { get }
    /// The answer to reset of the card (ISO/IEC 7816-3 8.2); for a contactless card, the one that the reader made up.
    var atr: Data { get }
    /// The transmission protocol in use: `T=0`, `T=1`, `T=CL`; empty when unknown.
    var protocolName: String { get }

    /// Resets the card. Applications and security states are lost.
    ///
    /// - Returns: the new answer to reset.
    /// - Throws: ``TransportError``.
    func resetCard() async throws -> Data

    /// Ends the connection and takes the card out, where the reader can; otherwise waits until somebody does.
    ///
    /// - Throws: ``TransportError``.
    func removeCard() async throws

    /// Sends a control code to the reader itself (`SCardControl`).
    ///
    /// - Parameter code: the reader service's control code.
    /// - Throws: ``TransportError``.
    func control(code: UInt32, data: Data) async throws -> Data
}

extension CardConnection {
    public func control(code: UInt32, data: Data) async throws -> Data { throw TransportError.unsupported("control") }
}
