// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials
public import TagTransport

/// Everything that a DESFire card shows: of itself, of its applications, and of their files as far as rights and keys go.
public struct DESFireSurvey: Sendable, Codable, Equatable {
    public struct File: Sendable, Codable, Equatable {
        public var number: UInt8
        public var settings: DESFireFileSettings?
        /// The content of a data file or transaction MAC, or the records one behind the other.
        public var data: Data?
        public var value: Int32?
        /// Why there is no content.
        public var refusal: String?
    }

    public struct Application: Sendable, Codable, Equatable {
        /// Three octets in card order.
        public var identifier: Data
        public var keySettings: DESFireKeySettings?
        public var files: [File]
        /// Why its files could not be listed.
        public var refusal: String?
    }

    public var version: DESFireVersion
    public var applications: [Application]
    /// Octets; nil when the card does not tell.
    public var freeMemory: Int?
}

extension CoreExtendedNFC {
    /// Reads everything that a DESFire card gives out, without changing anything on it.
    ///
    /// Each file is read in plain when everybody may read it, else under the first of the keys given that may.
    ///
    /// - Parameters:
    ///   - application: three octets in card order; nil looks at all.
    ///   - keys: by number, for every application that is looked at.
    ///   - diversified: the numbers of those keys that are masters: the card's own key follows by its UID and the application
    ///     (NXP AN10922, the input UID and then identifier in card order).
    ///   - method: nil takes the EV1 channel that fits each key.
    /// - Throws: ``NFCError``: `authenticationFailed` when a key is wrong, `secureMessagingError` when an answer was tampered with. What
    ///   the card refuses is told in the result.
    public static func surveyDESFire(
        application: Data? = nil, keys: [UInt8: DESFireKey] = [:], diversified: Set<UInt8> = [],
        method: DESFireAuthentication? = nil, framing: DESFireFraming = .isoWrapped, transport: any NFCTagTransport
    ) async throws -> DESFireSurvey {
        var survey = DESFireSurveying(
            card: DESFireCard(transport: transport, framing: framing), keys: keys, masters: diversified, method: method)
        return try await survey.run(application)
    }
}

/// The course of a survey.
private struct DESFireSurveying {
    var card: DESFireCard
    let keys: [UInt8: DESFireKey]
    /// The numbers of keys that the card's own are derived from.
    let masters: Set<UInt8>
    let method: DESFireAuthentication?
    private var uid = Data()
    /// The application that is being looked at.
    private var current = Data()

    init(card: DESFireCard, keys: [UInt8: DESFireKey], masters: Set<UInt8>, method: DESFireAuthentication?) {
        self.card = card
        self.keys = keys
        self.masters = masters
        self.method = method
    }

    mutating func run(_ application: Data?) async throws -> DESFireSurvey {
        // Whatever was selected or authenticated before, the card does not forget between two programs.
        try await card.selectApplication(Data([0, 0, 0]))
        let version = try await card.version()
        uid = version.uid
        let free = version.generation == .d40 ? nil : try await told { try await $0.freeMemory() }.value
        var identifiers = [Data]()
        if let application {
            identifiers = [application]
        } else {
            identifiers = try await card.applicationIDs()
        }
        var survey = DESFireSurvey(version: version, applications: [], freeMemory: free)
        for identifier in identifiers {
            current = identifier
            try await card.selectApplication(identifier)
            survey.applications.append(try await look())
        }
        return survey
    }

    private mutating func look() async throws -> DESFireSurvey.Application {
        // The lowest key given: listing may need one, and so may everything else.
        if let first = keys.keys.min() { try await authenticate(first) }
        let settings = try await told { try await $0.keySettings() }.value
        let listed = try await told { try await $0.fileIDs() }
        var application = DESFireSurvey.Application(
            identifier: current, keySettings: settings, files: [], refusal: listed.refusal)
        for number in listed.value ?? [] {
            var file = DESFireSurvey.File(number: number)
            let settings = try await told { try await $0.fileSettings(number) }
            file.settings = settings.value
            file.refusal = settings.refusal
            if let settings = settings.value { try await read(&file, settings) }
            application.files.append(file)
        }
        return application
    }

    private mutating func read(_ file: inout DESFireSurvey.File, _ settings: DESFireFileSettings) async throws {
        let number = file.number
        let use: DESFireUse = settings.fileType == 2 ? .debit : .read
        if !settings.allows(use, session: card.session?.keyNumber) {
            guard let key = keys.keys.sorted().first(where: { settings.allows(use, session: $0) }) else {
                file.refusal = "no key given may read it"
                return
            }
            try await authenticate(key)
        }
        switch settings.kind {
        case .value:
            let result = try await told { try await $0.value(number) }
            (file.value, file.refusal) = (result.value, result.refusal)
        case .linearRecord(_, _, let present), .cyclicRecord(_, _, let present):
            guard present > 0 else {
                file.data = Data()
                return
            }
            let result = try await told { try await $0.readRecords(number) }
            (file.data, file.refusal) = (result.value, result.refusal)
        default:
            let result = try await told { try await $0.read(number) }
            (file.data, file.refusal) = (result.value, result.refusal)
        }
    }

    private mutating func authenticate(_ number: UInt8) async throws {
        guard var key = keys[number], card.session?.keyNumber != number else { return }
        if masters.contains(number) { key = try key.diversified(by: [UInt8](uid + current)) }
        try await card.authenticate(keyNumber: number, key: key, method: method)
    }

    /// What a card refuses is part of the result. The session has ended with it, so it is begun anew.
    private mutating func told<Value>(
        _ work: (inout DESFireCard) async throws -> Value
    ) async throws -> (value: Value?, refusal: String?) {
        let session = card.session
        do {
            return (try await work(&card), nil)
        } catch NFCError.desfireError(let status) {
            try await card.selectApplication(current.isEmpty ? Data([0, 0, 0]) : current)
            if let number = session?.keyNumber { try await authenticate(number) }
            return (nil, status.text)
        }
    }
}

extension DESFireFileSettings {
    /// Whether everybody or the holder of the key may do it.
    fileprivate func allows(_ use: DESFireUse, session key: UInt8?) -> Bool {
        ([accessRights] + additionalAccessRights).contains { set in
            let rights = use == .debit ? [set.read, set.write, set.readWrite] : [set.read, set.readWrite]
            return rights.contains(.free) || (key.map { rights.contains(.key($0 & 0x0F)) } ?? false)
        }
    }
}
