// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension CredentialSession {
    /// What a session can do now.
    public enum State: Equatable, Sendable {
        /// Credentials can be listed, added and deleted.
        case management
        /// The credential talks to a contactless reader.
        case cardEmulation(credential: Credential)
        /// The app talks to the credential.
        case wired(credential: Credential)
        /// The end. A new session must be started.
        case invalid

        public static func == (left: Self, right: Self) -> Bool {
            switch (left, right) {
            case (.management, .management), (.invalid, .invalid): true
            case (.cardEmulation(let one), .cardEmulation(let other)), (.wired(let one), .wired(let other)): one == other
            default: false
            }
        }

        /// `wired`.
        package var name: String {
            switch self {
            case .management: "management"
            case .cardEmulation: "cardEmulation"
            case .wired: "wired"
            case .invalid: "invalid"
            }
        }

        package var credential: Credential? {
            switch self {
            case .cardEmulation(let credential), .wired(let credential): credential
            case .management, .invalid: nil
            }
        }
    }

    /// What happened, in the order in which it did.
    public enum Event: Sendable {
        /// The session ended; no event follows.
        case sessionInvalidated(reason: ErrorCode)
        case credentialFinishedInstalling(credential: Credential)
        case fieldStateChanged(info: NFCFieldInformation)
        case connectivityEvent(ConnectivityEvent)
        /// Card emulation ended by itself; the session is in management.
        case cardEmulationTimeout
        case presentmentIntentAssertionTimeout

        /// The case's name.
        package var name: String {
            switch self {
            case .sessionInvalidated: "sessionInvalidated"
            case .credentialFinishedInstalling: "credentialFinishedInstalling"
            case .fieldStateChanged: "fieldStateChanged"
            case .connectivityEvent: "connectivityEvent"
            case .cardEmulationTimeout: "cardEmulationTimeout"
            case .presentmentIntentAssertionTimeout: "presentmentIntentAssertionTimeout"
            }
        }
    }

    /// Whether a reader's field is there.
    public enum NFCFieldInformation: Equatable, Hashable, Sendable {
        case fieldPresent
        case fieldAbsent
    }

    /// What an applet said of a transaction (the transaction event of ETSI TS 102 622).
    public struct ConnectivityEvent: Sendable {
        /// The applet instance that spoke.
        public let instanceApplicationIdentifier: Data
        /// Its own words; their layout is the applet's affair.
        public let data: Data

        package init(instanceApplicationIdentifier: Data, data: Data) {
            self.instanceApplicationIdentifier = instanceApplicationIdentifier
            self.data = data
        }
    }

    /// What the secure element is.
    public struct SecureElementInfo: Codable, Sendable {
        /// `JCOP X.Y`: X the kind of chip, Y its release.
        public let hardwareReleaseVersionInfo: String
        /// The certificate of the controlling authority's security domain; DER.
        public let secureElementPlatformSigningCertificate: Data

        package init(hardwareReleaseVersionInfo: String, secureElementPlatformSigningCertificate: Data) {
            self.hardwareReleaseVersionInfo = hardwareReleaseVersionInfo
            self.secureElementPlatformSigningCertificate = secureElementPlatformSigningCertificate
        }
    }

    /// How card emulation is to be done. There is nothing to choose yet.
    public struct CardEmulationOptions: Sendable {
        /// Options as the system sets them.
        public init() {}
    }
}
