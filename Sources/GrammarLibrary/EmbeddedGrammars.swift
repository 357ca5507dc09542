// SPDX-License-Identifier: MIT

import GrammarLanguage

extension GrammarLibrary {
    /// The files of `Grammars/` as they were when this was built, in order of name. A test compares the list with the folder.
    public static let embedded: [GrammarSource] = [
        source("activeAuthentication", PackageResources.activeAuthentication_grammar),
        source("atr", PackageResources.atr_grammar),
        source("bac", PackageResources.bac_grammar),
        source("chipAuthentication", PackageResources.chipAuthentication_grammar),
        source("credentialSession", PackageResources.credentialSession_grammar),
        source("desfire", PackageResources.desfire_grammar),
        source("emrtd", PackageResources.emrtd_grammar),
        source("globalPlatform", PackageResources.globalPlatform_grammar),
        source("iso14443", PackageResources.iso14443_grammar),
        source("iso7816", PackageResources.iso7816_grammar),
        source("mifareSAM", PackageResources.mifareSAM_grammar),
        source("ndef", PackageResources.ndef_grammar),
        source("ntag424", PackageResources.ntag424_grammar),
        source("pace", PackageResources.pace_grammar),
        source("pcscReader", PackageResources.pcscReader_grammar),
        source("secureMessaging", PackageResources.secureMessaging_grammar),
        source("t1", PackageResources.t1_grammar),
        source("terminalAuthentication", PackageResources.terminalAuthentication_grammar),
        source("type4", PackageResources.type4_grammar),
    ]

    private static func source(_ name: String, _ octets: [UInt8]) -> GrammarSource {
        GrammarSource(name: "\(name).grammar", text: String(decoding: octets, as: UTF8.self))
    }
}
