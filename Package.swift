// swift-tools-version: 6.2
import Foundation
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// A library target of `Sources/`; the order of this list is the order of dependence.
func part(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

/// The tests of the part of the same name; every one may use `TestSupport`.
func tests(of name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .testTarget(
        name: "\(name.prefix(1).uppercased())\(name.dropFirst())Tests",
        dependencies: [.target(name: name), "TestSupport"] + dependencies,
        swiftSettings: strict
    )
}

/// The grammars of `Grammars/`, embedded in code. A target must hold its resources, so this one stands at the top and leaves out
/// everything else.
func grammarLibrary(_ dependencies: [Target.Dependency]) -> Target {
    func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: "\(Context.packageDirectory)/\(folder)")) ?? []).sorted()
    }
    let others =
        names(in: ".").filter { !["Grammars", "Sources"].contains($0) && !$0.hasPrefix(".") }
        + names(in: "Sources").filter { $0 != "GrammarLibrary" }.map { "Sources/\($0)" }
        + ["Grammars/Editor"]
    return .target(
        name: "GrammarLibrary", dependencies: dependencies, path: ".", exclude: others, sources: ["Sources/GrammarLibrary"],
        resources: [.embedInCode("Grammars")], swiftSettings: strict
    )
}

let package = Package(
    name: "tapdeck",
    products: [
        .library(name: "CoreExtendedNFC", targets: ["CoreExtendedNFC"]),
        .library(name: "SecureElementCredential", targets: ["SecureElementCredential"]),
        .library(name: "Tracing", targets: ["Tracing"]),
        .library(name: "Replay", targets: ["Replay"]),
        .library(name: "TraceFile", targets: ["TraceFile"]),
        .library(name: "GrammarLanguage", targets: ["GrammarLanguage"]),
        .executable(name: "tapdeck", targets: ["tapdeck"]),
    ],
    targets: [
        .systemLibrary(name: "CPCSCLite"),
        .systemLibrary(name: "CLibCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CPcap", pkgConfig: "libpcap", providers: [.apt(["libpcap-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),

        part("Octets", []),
        part("Threads", []),
        part("CardCrypto", ["Octets", "CLibCrypto"]),
        part("TagTransport", ["Octets"]),
        part("GlobalPlatform", ["Octets", "CardCrypto", "TagTransport"]),
        part("CardSockets", ["Octets", "Threads"]),
        part("PCSC", ["CPCSCLite", "Octets", "Threads", "CardCrypto", "TagTransport"]),
        part("CoreExtendedNFC", ["Octets", "CardCrypto", "TagTransport", "PCSC"]),
        part("SecureElementCredential", ["Octets", "CardCrypto", "TagTransport", "GlobalPlatform", "CardSockets"]),
        part("VirtualCards", ["Octets", "CardCrypto", "TagTransport", "CardSockets"]),
        part(
            "Flows",
            [
                "Octets", "CardCrypto", "TagTransport", "GlobalPlatform", "CardSockets", "CoreExtendedNFC",
                "SecureElementCredential",
            ]),
        part("TraceFile", ["Octets", "CZlib"]),
        part("Tracing", ["Octets", "CardCrypto", "TagTransport", "SecureElementCredential", "Flows", "TraceFile"]),
        part("GrammarRuntime", ["Octets", "CardCrypto"]),
        part("GrammarLanguage", ["Octets", "GrammarRuntime"]),
        grammarLibrary(["GrammarRuntime", "GrammarLanguage"]),
        part(
            "TraceDecoding",
            [
                "Octets", "CardCrypto", "TagTransport", "TraceFile", "GrammarRuntime", "GrammarLanguage", "GrammarLibrary",
            ]),
        part(
            "Replay",
            [
                "Octets", "CardCrypto", "TagTransport", "CardSockets", "SecureElementCredential", "VirtualCards", "Flows",
                "TraceFile", "Tracing", "GrammarRuntime", "GrammarLibrary", "TraceDecoding",
            ]),
        .executableTarget(
            name: "tapdeck",
            dependencies: [
                "Octets", "Threads", "CardCrypto", "TagTransport", "GlobalPlatform", "CardSockets", "PCSC", "CoreExtendedNFC",
                "SecureElementCredential", "VirtualCards", "Flows",
                "TraceFile", "Tracing", "GrammarRuntime", "GrammarLanguage", "GrammarLibrary", "TraceDecoding", "Replay",
            ],
            swiftSettings: strict
        ),

        .target(
            name: "TestSupport",
            dependencies: ["Octets"],
            path: "Tests/TestSupport",
            swiftSettings: strict
        ),
        .target(
            name: "SessionSupport",
            dependencies: ["Octets", "TagTransport", "Flows", "TraceFile", "Tracing", "VirtualCards", "TestSupport"],
            path: "Tests/SessionSupport",
            swiftSettings: strict
        ),
        tests(of: "Octets"),
        tests(of: "Threads"),
        tests(of: "CardCrypto", ["Octets"]),
        tests(of: "TagTransport", ["Octets"]),
        tests(
            of: "GlobalPlatform",
            ["Octets", "CardCrypto", "TagTransport", "CardSockets", "VirtualCards", "GrammarRuntime", "GrammarLibrary"]),
        tests(of: "CardSockets", ["Octets"]),
        tests(of: "PCSC", ["Octets", "CardCrypto", "TagTransport", "CardSockets", "VirtualCards"]),
        tests(
            of: "CoreExtendedNFC",
            ["Octets", "CardCrypto", "TagTransport", "CardSockets", "PCSC", "VirtualCards", "TraceFile"]),
        tests(
            of: "SecureElementCredential",
            ["Octets", "CardCrypto", "TagTransport", "GlobalPlatform", "CardSockets", "PCSC", "VirtualCards"]),
        tests(of: "VirtualCards", ["Octets", "CardCrypto", "TagTransport", "CardSockets"]),
        tests(of: "Flows", ["Octets", "TagTransport", "VirtualCards", "CoreExtendedNFC"]),
        tests(of: "TraceFile", ["Octets", "CPcap"]),
        tests(
            of: "Tracing",
            [
                "Octets", "CardCrypto", "TagTransport", "CoreExtendedNFC", "Flows", "TraceFile", "VirtualCards", "SessionSupport",
            ]),
        tests(of: "GrammarRuntime", ["Octets", "CardCrypto"]),
        tests(of: "GrammarLanguage", ["Octets", "GrammarRuntime"]),
        tests(of: "GrammarLibrary", ["GrammarRuntime", "GrammarLanguage"]),
        tests(
            of: "TraceDecoding",
            [
                "Octets", "CardCrypto", "TagTransport", "TraceFile", "Tracing", "GrammarRuntime", "GrammarLanguage",
                "GrammarLibrary", "SessionSupport",
            ]),
        tests(
            of: "Replay",
            [
                "Octets", "CardCrypto", "TagTransport", "GlobalPlatform", "CardSockets", "PCSC", "CoreExtendedNFC",
                "SecureElementCredential", "Flows", "TraceFile", "Tracing", "TraceDecoding", "VirtualCards",
                "SessionSupport",
            ]),
        tests(
            of: "tapdeck", ["Octets", "PCSC", "TraceFile", "CardCrypto", "GlobalPlatform", "TagTransport", "VirtualCards"]),
        .testTarget(name: "HouseTests", dependencies: ["TestSupport"], swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
