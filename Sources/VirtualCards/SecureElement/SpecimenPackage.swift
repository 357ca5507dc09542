// SPDX-License-Identifier: MIT

/// A load file whose code the simulated element has: what an installation loads.
public struct SpecimenPackage: Sendable, Hashable {
    /// The load file's name, its module's, and one for an instance.
    public let aid: [UInt8]
    /// Its one module.
    public let moduleAID: [UInt8]
    /// A name for an instance.
    public let instanceAID: [UInt8]
    /// Octets of code that follow the components that name the applet.
    let codeLength: Int

    /// A payment applet like a wallet's: GET PROCESSING OPTIONS, READ RECORD, GENERATE AC; pays only when authorized.
    public static let payment = SpecimenPackage("PAY", codeLength: 6_000)
    /// An identity applet: data in a file, and INTERNAL AUTHENTICATE.
    public static let identity = SpecimenPackage("IDY", codeLength: 3_000)
    /// A loyalty applet: points, each change of which is a transaction event.
    public static let loyalty = SpecimenPackage("LOY", codeLength: 1_500)
    /// All three.
    public static let all = [payment, identity, loyalty]

    private init(_ name: String, codeLength: Int) {
        // An unregistered name (ISO/IEC 7816-5 8.3): F0, TD, three letters, version 01.
        aid = [0xF0, 0x54, 0x44] + Array(name.utf8) + [0x01]
        moduleAID = aid + [0x01]
        instanceAID = aid + [0x01, 0x01]
        self.codeLength = codeLength
    }

    /// The load file data block: the components Header and Applet of a Java Card CAP file (JCVM 6.4 and 6.6), and a Method component
    /// that stands for the code.
    public var loadFileDataBlock: [UInt8] {
        func component(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
            [tag, UInt8(truncatingIfNeeded: content.count >> 8), UInt8(truncatingIfNeeded: content.count)] + content
        }
        let header: [UInt8] =
            [0xDE, 0xCA, 0xFF, 0xED, 0x01, 0x02, 0x04] + [0x00, 0x01, UInt8(truncatingIfNeeded: aid.count)] + aid
        let applet: [UInt8] = [0x01, UInt8(truncatingIfNeeded: moduleAID.count)] + moduleAID + [0x00, 0x10]
        let code = (0..<codeLength).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ Int(aid[3])) }
        return component(0x01, header) + component(0x03, applet) + component(0x07, code)
    }
}
