// SPDX-License-Identifier: MIT

import FoundationEssentials
import GrammarLanguage
import GrammarLibrary

/// `wireshark install`: the plug-in and a profile for Wireshark.
enum WiresharkVerb: Verb {
    static let name = "wireshark"
    static let summary = "the grammars in Wireshark"
    static let synopsis = ["wireshark install [--dir DIR] [--force]    the plug-in, and the profile Tapdeck"]
    static let options = [
        OptionSpec("--dir", .required("DIR"), "write below DIR: plugins/ and profiles/"),
        OptionSpec("--force", .none, "replace files that tapdeck did not write"),
        OptionSpec("--grammar", .required("DIR"), "the grammars of a folder in place of those built in"),
    ]
    static let details = [
        "Without --dir the plug-in goes to ~/.local/lib/wireshark/plugins, the profile to Wireshark's",
        "folder of profiles: ~/.config/wireshark, or WIRESHARK_CONFIG_DIR. Nothing else is touched.",
        "The profile names dissectors that stock Wireshark asks for, and colours rows.",
    ]

    private static let mark = "Made by `tapdeck"

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard arguments.operands.first == "install" else {
            let word = arguments.operands.first
            throw Failure.usage(
                word.map { "unknown word \($0); known: install" } ?? "wireshark needs to know what to do: install")
        }
        guard arguments.operands.count == 1 else { throw Failure.usage("wireshark install takes no files") }
        let (plugins, profiles) = try folders(arguments)
        let plugin = WiresharkPlugin(try GrammarVerb.library(arguments).program)
        let files = [
            ("\(plugins)/tapdeck.lua", plugin.text),
            ("\(profiles)/Tapdeck/decode_as_entries", decodeAs),
            ("\(profiles)/Tapdeck/colorfilters", colours),
        ]
        // All are looked at before one is written.
        for (path, text) in files where !arguments.has("--force") {
            guard let there = FileManager.default.contents(atPath: path) else { continue }
            let old = String(decoding: there, as: UTF8.self)
            guard old == text || old.prefix(200).contains(mark) else {
                throw Failure(.wrongUsage, "\(path) is not tapdeck's: nothing was written", "--force replaces it")
            }
        }
        for (path, text) in files {
            let folder = String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex))
            do { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) } catch {
                throw Failure(.outside, "\(folder) cannot be made")
            }
            try GrammarVerb.write(text, to: path)
            if arguments.wantsJSON {
                terminal.result("{\"wrote\":\(JSONText.quoted(path)),\"bytes\":\(text.utf8.count)}")
            } else {
                terminal.result("wrote \(path)")
            }
        }
        terminal.note("\(plugin.fieldCount) fields under tapdeck; wireshark -C Tapdeck FILE uses the profile")
        terminal.note("to undo: rm -r \(plugins)/tapdeck.lua \(profiles)/Tapdeck")
        return .fine
    }

    private static func folders(_ arguments: Arguments) throws -> (plugins: String, profiles: String) {
        if let folder = arguments.value("--dir") { return ("\(folder)/plugins", "\(folder)/profiles") }
        let environment = ProcessInfo.processInfo.environment
        guard let home = environment["HOME"], !home.isEmpty else {
            throw Failure(.outside, "HOME is not set; --dir DIR says where to write")
        }
        let configuration =
            environment["WIRESHARK_CONFIG_DIR"] ?? (environment["XDG_CONFIG_HOME"] ?? "\(home)/.config") + "/wireshark"
        return ("\(home)/.local/lib/wireshark/plugins", "\(configuration)/profiles")
    }

    /// What stock Wireshark does not choose by itself: the field inside a block, and inside a CCID message, is an APDU.
    private static let decodeAs = """
        # Made by `tapdeck wireshark install`.
        decode_as_entry: iso14443.subdissector,0,(none),ISO 7816
        decode_as_entry: usbccid.subdissector,0,(none),ISO 7816

        """

    /// Stock fields only, so that the profile is right without the plug-in. The first that fits colours the row.
    private static let colours = """
        # Made by `tapdeck wireshark install`.
        @transport error@syslog.level <= 3@[64250,52428,52428][30840,0,0]
        @refused@iso7816.apdu.sw1 >= 0x64 && iso7816.apdu.sw1 != 0x90 && iso7816.apdu.sw1 != 0x91 && iso7816.apdu.sw1 != 0x9f@[65535,59110,54998][40863,10280,0]
        @warning@iso7816.apdu.sw1 == 0x62 || iso7816.apdu.sw1 == 0x63@[65535,64764,54998][30840,20560,0]
        @opened or joined@frame.interface_name matches "^plain:"@[59110,65535,59110][0,20560,0]
        @frames beneath@frame.interface_name matches "^rf:"@[62965,62965,62965][25700,25700,25700]
        @calls and marks@frame.interface_name == "meta"@[60395,62965,65535][10280,20560,35980]
        @reader@frame.interface_name matches "^reader:"@[64764,61680,65535][30840,10280,35980]

        """
}
