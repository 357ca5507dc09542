// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials
public import TagTransport

/// What an NTAG 424 DNA shows.
public struct NTAG424Survey: Sendable, Codable, Equatable {
    public struct File: Sendable, Codable, Equatable {
        public var number: UInt8
        public var settings: NTAG424FileSettings
        public var data: Data?
        /// Why there is no content.
        public var refusal: String?
    }

    public var version: DESFireVersion
    /// The UID that only an authenticated reader is told.
    public var uid: Data?
    /// Whether NXP signed the UID; nil when the chip gave no signature.
    public var isOriginal: Bool?
    public var files: [File]
}

extension CoreExtendedNFC {
    /// Reads everything that an NTAG 424 DNA gives out, without changing anything on it but its read counter.
    ///
    /// - Parameters:
    ///   - keyNumber: the application key to authenticate with, when `key` is given.
    ///   - method: an EV2 or LRP form.
    /// - Throws: ``NFCError``: `authenticationFailed` when the key is wrong. What the card refuses is told in the result.
    public static func surveyNTAG424(
        keyNumber: UInt8 = 0, key: DESFireKey? = nil, method: DESFireAuthentication = .ev2First,
        transport: any NFCTagTransport
    ) async throws -> NTAG424Survey {
        var card = NTAG424Card(transport: transport)
        func open() async throws {
            try await card.selectApplication()
            if let key { try await card.authenticate(keyNumber: keyNumber, key: key, method: method) }
        }
        try await open()
        let version = try await card.version()
        var survey = NTAG424Survey(version: version, files: [])
        if key != nil { survey.uid = try await card.cardUID() }
        do {
            survey.isOriginal = try await card.isOriginal()
        } catch NFCError.desfireError {
            try await open()
        }
        for number in UInt8(1)...3 {
            var file = NTAG424Survey.File(number: number, settings: try await card.fileSettings(number))
            do {
                file.data = try await card.read(number)
            } catch NFCError.desfireError(let status) {
                file.refusal = status.text
                try await open()
            }
            survey.files.append(file)
        }
        return survey
    }
}
