// SPDX-License-Identifier: MIT

import FoundationEssentials
import TagTransport

extension NFCError {
    /// What the facade throws for an error from below.
    ///
    /// A transport's errors become errors of the card library; what says nothing about a card stays as it is:
    /// `EnvironmentError`, `CancellationError`, a transport error `readersForbidden`, and errors of a program's own transports.
    ///
    /// | transport | card library |
    /// |---|---|
    /// | tagConnectionLost | tagConnectionLost |
    /// | timeout | sessionTimeout: the card may still be there, it only did not answer |
    /// | tagReset, sharingViolation, readerFailure | sessionInvalidated |
    /// | readerUnavailable, serviceUnavailable | nfcNotAvailable |
    /// | cancelled | sessionInvalidatedByCaller |
    /// | unsupportedOperation | unsupportedOperation |
    /// | malformedResponse | invalidResponse |
    package static func facing(_ error: any Error) -> any Error {
        switch error {
        case let error as TransportError: error.nfcError ?? error
        case let error as SecureMessagingError: NFCError.secureMessagingError(error.detail)
        case let error as PACEError: NFCError.paceFailed(error.detail)
        case let error as BasicAccessControlError: NFCError.bacFailed(error.detail)
        case let error as DESFireChannelError: NFCError.secureMessagingError(error.detail)
        case let error as LDSError: NFCError.dataGroupParseFailed(error.detail)
        default: error
        }
    }
}

extension TransportError {
    var nfcError: NFCError? {
        switch self.case {
        case .tagConnectionLost: .tagConnectionLost
        case .timeout: .sessionTimeout
        case .tagReset, .sharingViolation, .readerFailure: .sessionInvalidated(description)
        case .readerUnavailable, .serviceUnavailable: .nfcNotAvailable
        case .cancelled: .sessionInvalidatedByCaller
        case .unsupportedOperation: .unsupportedOperation(detail)
        case .malformedResponse: .invalidResponse(Data())
        case .readersForbidden: nil
        }
    }
}
