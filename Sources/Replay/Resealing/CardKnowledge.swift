// SPDX-License-Identifier: MIT

import CardCrypto
import Octets
import TraceDecoding
import TraceFile

/// What the recorded card knows: its passwords and keys, from the secrets, and from the call's arguments where those are silent.
struct CardKnowledge: Sendable {
    /// The secrets, with the grammars' names for what the arguments say.
    let secrets: SecretStore
    /// What a password's key is derived from, by the number that MSE:Set AT gives it (ICAO 9303-11 4.4.4.1).
    let passwords: [UInt8: [UInt8]]
    /// Files of a travel document that say how its keys are used, by name: `EF.CardAccess`, `DG14`.
    let files: [String: [UInt8]]

    static let passwordNames: [UInt8: String] = [1: "mrzKey", 2: "can", 3: "pin", 4: "puk"]
    /// A private key of the chip, for Chip Authentication and the mapping of that name.
    static let chipKey = "chipAuthentication.chipKey"
    /// The private key of Active Authentication: PKCS#8.
    static let signingKey = "activeAuthentication.chipKey"

    init(trace: Trace, secrets: SecretStore, arguments: [String: JSONValue]) {
        var found: [UInt8: [UInt8]] = [:]
        var records: [SecretRecord] = []
        func text(_ name: String, _ argument: String) -> [UInt8]? {
            secrets.value(named: name) ?? arguments[argument]?.stringValue.map { Array($0.utf8) }
        }
        if let zone = text("mrz", "mrzKey"), let hash = try? Digest.sha1.hash(zone) {
            found[1] = hash
            records.append(SecretRecord(kind: .key, name: "bac.seed", octets: Array(hash.prefix(16))))
        }
        for (number, name) in Self.passwordNames where number > 1 { found[number] = text(name, name) }
        passwords = found
        func key(_ name: String, _ value: JSONValue?) {
            guard let octets = value?.stringValue.flatMap({ try? Hex.decode($0) }) else { return }
            records.append(SecretRecord(kind: .key, name: name, octets: octets))
        }
        if case .array(let keys)? = arguments["keys"] {
            for case .object(let entry) in keys { key("desfire.key", entry["key"]) }
        }
        if case .object(let entry)? = arguments["key"] { key("desfire.key", entry["key"]) }
        for name in ["globalPlatform.enc", "globalPlatform.mac"] { key(name, arguments["key"]) }
        let all = secrets.merging(SecretStore(records))
        // The session keys of GlobalPlatform follow from the static ones, for any number of sessions.
        let isStatic = all.value(named: "globalPlatform.enc") != nil && all.value(named: "globalPlatform.mac") != nil
        let sessionKeys: Set<String> = ["globalPlatform.sEnc", "globalPlatform.sMac", "globalPlatform.sRmac"]
        self.secrets = isStatic ? SecretStore(all.records.filter { !sessionKeys.contains($0.name) }, session: all.session) : all
        files = Self.files(trace, secrets)
    }

    private static func files(_ trace: Trace, _ secrets: SecretStore) -> [String: [UInt8]] {
        let wanted = ["EF.CardAccess", "EF.CardSecurity", "DG14", "DG15"]
        guard
            trace.rows.contains(where: { $0.direction == .sent && $0.body.count > 4 && [0x22, 0x86, 0x88].contains($0.body[1]) })
        else { return [:] }
        var decoder = TraceDecoder(interfaces: trace.interfaces, secrets: secrets, showsSecrets: true)
        decoder.hidesPieces = false
        var files: [String: [UInt8]] = [:]
        for row in trace.rows {
            if let file = decoder.push(row).file, wanted.contains(file.name) { files[file.name] = file.octets }
        }
        return files
    }

    func has(_ name: String) -> Bool { secrets.value(named: name) != nil }

    // MARK: - Keys of a travel document's chip

    /// The parameters of PACE with this protocol: by their number, else as EF.CardAccess says.
    func paceParameters(_ identifier: [UInt8], number: UInt8?) -> DomainParameters? {
        let infos = Self.infos(files["EF.CardAccess"])
        let number = number ?? infos.first { $0.identifier == identifier }?.parts.dropFirst().first?.value.last
        if let number, let parameters = DomainParameters.standardized(Int(number)) { return parameters }
        // PACEDomainParameterInfo: the protocol without its cipher, AlgorithmIdentifier, number (9303-11 9.2.2).
        let family = Array(identifier.dropLast())
        let explicit = infos.filter { $0.identifier == family }
        let chosen = explicit.first { $0.parts.count > 1 && $0.parts[1].value.last == number } ?? explicit.first
        guard let algorithm = chosen?.parts.first else { return nil }
        return try? DomainParameters(algorithmIdentifier: TLV.encode(algorithm.tag, algorithm.value))
    }

    /// The chip's key pair for Chip Authentication.
    ///
    /// - Parameter number: that of MSE:Set AT; nil when it names none.
    func chipPair(number: [UInt8]?) -> KeyAgreementKeyPair? {
        // ChipAuthenticationPublicKeyInfo: 0.4.0.127.0.7.2.2.1.n, SubjectPublicKeyInfo, number (9303-11 9.2.6).
        let infos = Self.infos(files["DG14"]).filter { $0.identifier.starts(with: Self.publicKeyArcs) }
        let named = infos.filter { info in
            number == nil || info.parts.count < 2 || Array(info.parts[1].value) == number
        }
        for info in named {
            guard let part = info.parts.first,
                let key = try? KeyAgreementPublicKey(subjectPublicKeyInfo: TLV.encode(part.tag, part.value))
            else { continue }
            if let pair = pair(of: key.octets, key.parameters) { return pair }
        }
        return nil
    }

    /// The chip's key pair for chip authentication mapping: the one whose public key EF.CardSecurity has.
    func mappingPair(_ parameters: DomainParameters) -> KeyAgreementKeyPair? {
        let pairs = chipKeys.compactMap { try? KeyAgreementKeyPair(parameters, privateKey: $0) }
        guard let file = files["EF.CardSecurity"] else { return pairs.first }
        return pairs.first { pair in
            let key = pair.publicKey
            guard file.count >= key.count else { return false }
            return (0...file.count - key.count).contains { file[$0..<$0 + key.count].elementsEqual(key) }
        }
    }

    private var chipKeys: [[UInt8]] { secrets.keys(named: Self.chipKey).map(\.octets) }

    private func pair(of publicKey: [UInt8], _ parameters: DomainParameters) -> KeyAgreementKeyPair? {
        for key in chipKeys {
            if let pair = try? KeyAgreementKeyPair(parameters, privateKey: key), pair.publicKey == publicKey { return pair }
        }
        return nil
    }

    private static let publicKeyArcs: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x01]

    /// The SecurityInfos of a file (9303-11 9.2): object identifier, then the other parts of each.
    private static func infos(_ file: [UInt8]?) -> [(identifier: [UInt8], parts: [TLV])] {
        guard var file, let outer = try? TLV.first(in: file[...]) else { return [] }
        if outer.tag == 0x6E { file = Array(outer.value) }
        guard let set = try? TLV.first(in: file[...]), set.tag == 0x31,
            let members = try? set.children(TLVRules(allowsFiller: false))
        else { return [] }
        return members.compactMap { member in
            guard let parts = try? member.children(TLVRules(allowsFiller: false)), let first = parts.first, first.tag == 0x06
            else {
                return nil
            }
            return (Array(first.value), Array(parts.dropFirst()))
        }
    }
}
