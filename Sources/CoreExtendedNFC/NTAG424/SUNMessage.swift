// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials
public import Octets

/// The keys and places of a SUN message: which of a URL's parameters hold what.
///
/// The defaults find the common names. A MAC covers what stands between the place where its input begins, which only the card's
/// settings tell, and itself; without ``macInputStart`` every place where it can begin is tried: a wrong one fits by chance once in 2^64.
public struct SUNConfiguration: Sendable, Equatable {
    /// Key of UID and counter where they are enciphered, 16 octets; zeros are the delivered key.
    public var metaReadKey: Data?
    /// Key of the MAC and of enciphered file data, 16 octets.
    public var fileReadKey: Data
    public var usesLRP: Bool
    public var piccDataNames: [String]
    public var uidNames: [String]
    public var counterNames: [String]
    public var encryptedNames: [String]
    public var macNames: [String]
    /// The text that the MAC's input begins with, for instance the name of its first parameter with `=`; nil tries what can be.
    public var macInputStart: String?

    public init(metaReadKey: Data? = nil, fileReadKey: Data, usesLRP: Bool = false, macInputStart: String? = nil) {
        self.metaReadKey = metaReadKey
        self.fileReadKey = fileReadKey
        self.usesLRP = usesLRP
        self.macInputStart = macInputStart
        piccDataNames = ["picc_data", "picc", "e", "p", "d"]
        uidNames = ["uid", "u"]
        counterNames = ["ctr", "counter", "n", "x"]
        encryptedNames = ["enc", "c", "file", "data"]
        macNames = ["cmac", "mac", "m", "sdmmac", "s"]
    }
}

/// What a verified SUN message says.
public struct SUNMessage: Sendable, Equatable {
    /// Seven octets; nil when it is not mirrored.
    public var uid: Data?
    /// SDMReadCtr; nil when it is not mirrored.
    public var counter: Int?
    /// The file data that was enciphered; nil when there is none.
    public var fileData: Data?
    /// The part of the URL that the MAC covers; empty when it covers UID and counter alone.
    public var coveredText: String
}

/// Why a SUN message is not accepted. Equality is on the code.
public struct SUNError: DetailedError {
    public enum Code: String, Sendable {
        /// A key that has not 16 octets.
        case key
        /// The URL has no MAC, or neither UID nor counter.
        case parameterMissing
        /// A parameter that is not hexadecimal or of another length.
        case parameterMalformed
        /// UID and counter do not come out of their cryptogram: another key, or a forged message.
        case piccData
        case mac
    }

    public let code: Code
    public let detail: String

    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}

extension SUNMessage {
    /// Verifies the URL that an NTAG 424 DNA made (AN12196 3.4).
    ///
    /// That the counter is newer than the last one seen is for the caller to check: a copied URL stays right.
    ///
    /// - Throws: ``SUNError``.
    public static func verify(url: String, _ configuration: SUNConfiguration) throws(SUNError) -> SUNMessage {
        let fileKey = try key(configuration.fileReadKey, "file read")
        let parameters = SUNParameter.all(of: url)
        func find(_ names: [String]) -> SUNParameter? {
            names.lazy.compactMap { name in parameters.last { $0.name == name } }.first
        }
        guard let macParameter = find(configuration.macNames) else {
            throw SUNError(.parameterMissing, "no MAC: none of \(configuration.macNames.joined(separator: ", "))")
        }
        let mac = try octets(macParameter, 8)
        var uid: [UInt8]?
        var counter: [UInt8]?
        if let picc = find(configuration.piccDataNames), picc.value.count == (configuration.usesLRP ? 48 : 32) {
            let metaKey = try key(configuration.metaReadKey ?? configuration.fileReadKey, "meta read")
            (uid, counter) = try openPICCData(try octets(picc, picc.value.count / 2), metaKey, configuration.usesLRP)
        } else {
            uid = try find(configuration.uidNames).map { parameter throws(SUNError) in try octets(parameter, 7) }
            // In plain text the counter stands most significant octet first.
            counter = try find(configuration.counterNames).map { parameter throws(SUNError) in
                try octets(parameter, 3).reversed()
            }
            guard uid != nil || counter != nil else {
                throw SUNError(.parameterMissing, "neither enciphered PICC data nor a UID or counter")
            }
        }
        let text = Array(url.utf8)
        let session = try SUNSession(fileKey, uid, counter, configuration.usesLRP)
        guard
            let start = starts(parameters, macParameter, text, configuration).first(where: { start in
                equalInConstantTime(session.mac(Array(text[start..<macParameter.start])), mac)
            })
        else { throw SUNError(.mac, "the MAC is wrong: another key, or a forged message") }
        var fileData: Data?
        // File data that the MAC does not cover could be anything.
        if let sealed = find(configuration.encryptedNames), sealed.start >= start, sealed.start < macParameter.start,
            sealed.value.count >= 32, sealed.value.count % 32 == 0
        {
            fileData = Data(try session.decipher(try octets(sealed, sealed.value.count / 2), counter))
        }
        return SUNMessage(
            uid: uid.map { Data($0) }, counter: counter.map { littleEndian($0) }, fileData: fileData,
            coveredText: String(decoding: text[start..<macParameter.start], as: UTF8.self))
    }

    /// Where the input of the MAC may begin: at itself, at a parameter's value or name, or at the front.
    private static func starts(
        _ parameters: [SUNParameter], _ mac: SUNParameter, _ text: [UInt8], _ configuration: SUNConfiguration
    ) -> [Int] {
        if let given = configuration.macInputStart {
            let wanted = Array(given.utf8)
            guard !wanted.isEmpty, mac.start >= wanted.count else { return given.isEmpty ? [mac.start] : [] }
            return (0...(mac.start - wanted.count)).filter { text[$0..<$0 + wanted.count].elementsEqual(wanted) }
        }
        let inside = parameters.filter { $0.start < mac.start }.flatMap { [$0.start, $0.nameStart] }
        let schemes = ["https://www.", "http://www.", "https://", "http://"].filter { text.starts(with: $0.utf8) }
        return [mac.start] + inside.reversed() + [0] + schemes.map { $0.utf8.count }
    }

    private static func openPICCData(
        _ sealed: [UInt8], _ key: [UInt8], _ usesLRP: Bool
    ) throws(SUNError) -> (uid: [UInt8]?, counter: [UInt8]?) {
        let plain: [UInt8]
        do {
            if usesLRP {
                var blocks = Array(sealed.prefix(8))
                plain = try LRP(key: key).decrypt(Array(sealed.dropFirst(8)), counter: &blocks)
            } else {
                plain = try BlockCipher.aes.decrypt(sealed, key: key)
            }
        } catch {
            throw SUNError(.piccData, error.detail)
        }
        // The tag: 80 UID, 40 counter, and the UID's length (NT4H2421Gx 9.3.4).
        guard let tag = plain.first, [0xC7, 0x87, 0x40].contains(tag) else {
            throw SUNError(.piccData, "UID and counter do not come out: another key, or a forged message")
        }
        var rest = plain.dropFirst()
        var uid: [UInt8]?
        if tag & 0x80 != 0 {
            uid = Array(rest.prefix(7))
            rest = rest.dropFirst(7)
        }
        return (uid, tag & 0x40 != 0 ? Array(rest.prefix(3)) : nil)
    }

    private static func key(_ key: Data, _ name: String) throws(SUNError) -> [UInt8] {
        guard key.count == 16 else { throw SUNError(.key, "the \(name) key has \(key.count) bytes, not 16") }
        return [UInt8](key)
    }

    private static func octets(_ parameter: SUNParameter, _ count: Int) throws(SUNError) -> [UInt8] {
        guard let octets = try? Hex.decode(parameter.value), octets.count == count else {
            throw SUNError(.parameterMalformed, "\(parameter.name) is not \(count) bytes in hexadecimal")
        }
        return octets
    }
}

/// A parameter of a URL's query, and where it stands in the URL's octets.
private struct SUNParameter {
    let name: String
    let value: String
    let nameStart: Int
    /// Of the value.
    let start: Int

    static func all(of url: String) -> [SUNParameter] {
        let text = Array(url.utf8)
        guard let question = text.firstIndex(of: UInt8(ascii: "?")) else { return [] }
        let end = text.firstIndex(of: UInt8(ascii: "#")) ?? text.count
        var result: [SUNParameter] = []
        var start = question + 1
        while start < end {
            let stop = text[start..<end].firstIndex(of: UInt8(ascii: "&")) ?? end
            if let equals = text[start..<stop].firstIndex(of: UInt8(ascii: "=")) {
                result.append(
                    SUNParameter(
                        name: String(decoding: text[start..<equals], as: UTF8.self),
                        value: String(decoding: text[(equals + 1)..<stop], as: UTF8.self), nameStart: start, start: equals + 1))
            }
            start = stop + 1
        }
        return result
    }
}

/// The session keys of one reading.
private struct SUNSession {
    private enum Keys {
        case aes(encryption: [UInt8], authentication: [UInt8])
        case lrp(encryption: LRP, authentication: LRP)
    }

    private let keys: Keys

    init(_ key: [UInt8], _ uid: [UInt8]?, _ counter: [UInt8]?, _ usesLRP: Bool) throws(SUNError) {
        do {
            if usesLRP {
                let session = try DESFireSessionKeys.dynamicMessagingLRP(key: key, uid: uid, counter: counter)
                keys = .lrp(encryption: try LRP(key: session, updateNumber: 1), authentication: try LRP(key: session))
            } else {
                let session = try DESFireSessionKeys.dynamicMessaging(key: key, uid: uid, counter: counter)
                keys = .aes(encryption: session.encryption, authentication: session.authentication)
            }
        } catch {
            throw SUNError(.key, error.detail)
        }
    }

    func mac(_ input: [UInt8]) -> [UInt8] {
        switch keys {
        case .aes(_, let key): oddOctets((try? CMAC.authenticate(input, key: key)) ?? [])
        case .lrp(_, let primitive): oddOctets(primitive.authenticate(input))
        }
    }

    func decipher(_ sealed: [UInt8], _ counter: [UInt8]?) throws(SUNError) -> [UInt8] {
        let count = counter ?? [0, 0, 0]
        do {
            switch keys {
            case .aes(let key, _):
                let vector = try BlockCipher.aes.encrypt(count + [UInt8](repeating: 0, count: 13), key: key)
                return try BlockCipher.aes.decrypt(sealed, key: key, iv: vector)
            case .lrp(let primitive, _):
                var blocks = count + [0, 0, 0]
                return try primitive.decrypt(sealed, counter: &blocks)
            }
        } catch {
            throw SUNError(.parameterMalformed, error.detail)
        }
    }
}
