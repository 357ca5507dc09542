// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

extension VirtualCardCatalog {
    static let passport = VirtualCardKind(
        name: "passport",
        summary: "a travel document: BAC, PACE, the ICAO specimen's data",
        options: commonOptions + [
            VirtualCardOption("mrz", "LINES", "the machine readable zone, commas between its lines"),
            VirtualCardOption("dg", "LIST", "the data groups: 1-5, 7, 11-16 (default 1,2)"),
            VirtualCardOption("photo", "BYTES", "the least length of DG2's image, up to 1000000"),
            VirtualCardOption("pace", "LIST", "ways to do PACE: ecdh-gm-aes128:13,dh-im-3des:2"),
            VirtualCardOption("can", "DIGITS", "the card access number (default 123456)"),
            VirtualCardOption("pin", "DIGITS", "a PIN for PACE, three tries"),
            VirtualCardOption("puk", "DIGITS", "what unblocks the PIN"),
            VirtualCardOption("no-bac", nil, "PACE alone opens it"),
            VirtualCardOption("ca", "LIST", "ways to do Chip Authentication: ecdh-aes128:13"),
            VirtualCardOption("aa", "KIND", "Active Authentication: rsa or ecdsa:13"),
            VirtualCardOption("ta", nil, "Terminal Authentication opens DG3 and DG4"),
            VirtualCardOption("chunk", "BYTES", "the most bytes of a file in one answer"),
            VirtualCardOption("strict", nil, "a read past a file's end ends the session (6B00)"),
            VirtualCardOption("quirk", "LIST", "what real chips do, see below: refuse-le,drop"),
            VirtualCardOption("delay", "MS", "how long each answer takes"),
            VirtualCardOption("issuer", "N", "the seed of the authority that signs (default 0)"),
        ]
    ) { options throws(VirtualCardError) in
        let zone = try options.list("mrz").map { lines throws(VirtualCardError) in try MachineReadableZone(lines: lines) }
        let chunk = try options.number("chunk", in: 1...UInt64(BinaryAccess.longestAnswer))
        let machine: PassportCard
        do {
            let issuer = try SpecimenIssuer.seeded(try options.number("issuer") ?? 0)
            var specimen = try PassportSpecimen(zone ?? .specimen, options, issuer: issuer)
            machine = PassportCard(
                files: try specimen.files(issuer), access: try BasicAccessControl(zone ?? .specimen),
                random: CardRandom(seed: try options.seed(), use: "passport"),
                longestRead: chunk.map { Int($0) } ?? BinaryAccess.longestAnswer, isStrict: options.isOn("strict"),
                configuration: specimen.configuration)
        } catch let error as VirtualCardError {
            throw error
        } catch {
            throw VirtualCardError(.cryptography, "the specimen's files cannot be signed: \(error)")
        }
        // Single size, and 08: a number drawn at random in a real chip (ISO/IEC 14443-3 6.5.4).
        return VirtualCard(
            kind: "passport", machine: machine, identifier: [0x08, 0x54, 0x44, 0x01], faults: try options.faults())
    }

    /// The quirks of a virtual passport and what each does, for a help text.
    public static let passportQuirks: [(name: String, summary: String)] = PassportQuirk.allCases.map {
        ($0.rawValue, $0.summary)
    }
}

/// What a virtual passport is made from: the options, and the keys that follow from the issuer's seed.
struct PassportSpecimen {
    private let zone: MachineReadableZone
    private let groups: [Int]
    private let photoLength: Int
    private(set) var configuration = PassportConfiguration()

    /// - Throws: ``VirtualCardError`` for an option's value, `CryptoError`.
    init(_ zone: MachineReadableZone, _ options: VirtualCardOptions, issuer: SpecimenIssuer) throws {
        self.zone = zone
        groups = try Self.groups(options)
        photoLength = Int(try options.number("photo", in: 0...1_000_000) ?? 0)
        var random = CardRandom(seed: issuer.seed, use: "chip")
        for text in options.list("pace") ?? [] { configuration.profiles.append(try PACEProfile(parsing: text)) }
        try setPasswords(options)
        try setChipKeys(options, &random)
        if let text = options["aa"] {
            configuration.activeAuthentication = try PassportActiveAuthentication(parsing: text, random: &random)
        }
        configuration.documentNumber = Array(zone.keyInformation.dropLast(14))
        if options.isOn("ta") {
            guard !configuration.chipKeys.isEmpty else {
                throw VirtualCardError(.badValue, "--ta follows Chip Authentication: --ca is needed too", option: "ta")
            }
            configuration.verifier = try SpecimenTerminals(seed: issuer.seed).verifier()
        }
        for name in options.list("quirk") ?? [] {
            guard let quirk = PassportQuirk(rawValue: name) else {
                let known = PassportQuirk.allCases.map(\.rawValue)
                let hint = VirtualCardError.nearest(to: name, in: known).map { "did you mean \($0)" }
                throw VirtualCardError(
                    .badValue, "--quirk: no quirk '\(name)'; \(hint ?? "known are \(known.joined(separator: ", "))")",
                    option: "quirk")
            }
            configuration.quirks.insert(quirk)
        }
        configuration.delay = UInt32(truncatingIfNeeded: try options.number("delay", in: 0...60_000) ?? 0)
    }

    /// The files, signed; DG14 and DG15 are there when there is something in them or they are asked for.
    mutating func files(_ issuer: SpecimenIssuer) throws(CryptoError) -> PassportFiles {
        var given: [Int: [UInt8]] = [:]
        var infos: [[UInt8]] = []
        for profile in configuration.profiles {
            if !infos.contains(profile.info) { infos.append(profile.info) }
            if let info = try profile.domainParameterInfo(), !infos.contains(info) { infos.append(info) }
        }
        let access = infos
        for key in configuration.chipKeys { infos += try key.infos() }
        if let info = try configuration.activeAuthentication?.securityInfo() { infos.append(info) }
        // TerminalAuthenticationInfo (9303-11 9.2.7).
        if configuration.verifier != nil {
            infos.append(DER.sequence(try DER.objectIdentifier("0.4.0.127.0.7.2.2.2"), DER.integer([1])))
        }
        if groups.contains(14) || infos.count > access.count { given[14] = SpecimenGroups.securityOptions(infos) }
        if let key = configuration.activeAuthentication { given[15] = try key.dataGroup15() }
        var files = try PassportFiles.specimen(zone, groups: groups, photoLength: photoLength, given: given, issuer: issuer)
        if configuration.quirks.contains(.capabilitiesInFile) {
            files.masterFile[PassportFiles.attributes] = PassportFiles.capabilities
        }
        guard !access.isEmpty else { return files }
        files.masterFile[PassportFiles.cardAccess] = DER.set(access)
        guard !configuration.mappingKeys.isEmpty else { return files }
        var secured = access
        for (number, pair) in configuration.mappingKeys.sorted(by: { $0.key < $1.key }) {
            secured += try ChipKey(pair, identifier: number).infos()
        }
        files.masterFile[PassportFiles.cardSecurity] = try issuer.cardSecurity(DER.set(secured))
        return files
    }

    private mutating func setPasswords(_ options: VirtualCardOptions) throws {
        configuration.allowsBasicAccess = !options.isOn("no-bac")
        guard !configuration.profiles.isEmpty else {
            for name in ["can", "pin", "puk", "no-bac"] where options[name] != nil {
                throw VirtualCardError(.badValue, "--\(name) is for a passport with --pace", option: name)
            }
            return
        }
        configuration.passwords[.mrz] = try Digest.sha1.hash(zone.keyInformation)
        configuration.passwords[.can] = Array((try Self.digits("can", in: options) ?? "123456").utf8)
        configuration.passwords[.pin] = try Self.digits("pin", in: options).map { Array($0.utf8) }
        configuration.passwords[.puk] = try Self.digits("puk", in: options).map { Array($0.utf8) }
    }

    private mutating func setChipKeys(_ options: VirtualCardOptions, _ random: inout CardRandom) throws {
        for text in options.list("ca") ?? [] {
            var key = try ChipKey(parsing: text, random: &random)
            let isSame = configuration.chipKeys.firstIndex {
                $0.parameters == key.parameters && $0.isExplicit == key.isExplicit
            }
            if let isSame {
                configuration.chipKeys[isSame].algorithms += key.algorithms
            } else {
                key.identifier = UInt8(truncatingIfNeeded: configuration.chipKeys.count + 1)
                configuration.chipKeys.append(key)
            }
        }
        // Numbers are for telling several keys apart (9303-11 9.2.5).
        if configuration.chipKeys.count == 1 { configuration.chipKeys[0].identifier = nil }
        for profile in configuration.profiles where profile.mapping == .chipAuthentication {
            guard configuration.mappingKeys[profile.parameterId] == nil else { continue }
            configuration.mappingKeys[profile.parameterId] = try KeyAgreementKeyPair(
                profile.parameters, random: random.octets(profile.parameters.randomLength))
        }
    }

    private static func groups(_ options: VirtualCardOptions) throws(VirtualCardError) -> [Int] {
        guard let names = options.list("dg") else { return [1, 2] }
        guard !names.isEmpty else { throw VirtualCardError(.badValue, "--dg names no data group", option: "dg") }
        var groups: [Int] = []
        for name in names {
            guard let group = Int(name), SpecimenGroups.numbers.contains(group), !groups.contains(group) else {
                throw VirtualCardError(.badValue, "--dg takes 1 to 5, 7 and 11 to 16, each once, not '\(name)'", option: "dg")
            }
            if group == 15, options["aa"] == nil {
                throw VirtualCardError(.badValue, "--dg: DG15 holds the key of --aa", option: "dg")
            }
            groups.append(group)
        }
        return groups
    }

    private static func digits(_ name: String, in options: VirtualCardOptions) throws(VirtualCardError) -> String? {
        guard let text = options[name] else { return nil }
        guard (4...12).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw VirtualCardError(.badValue, "--\(name) has 4 to 12 digits", option: name)
        }
        return text
    }
}
