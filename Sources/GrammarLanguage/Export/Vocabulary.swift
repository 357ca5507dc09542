// SPDX-License-Identifier: MIT

/// The words that mean something in a grammar's text, for editors.
public enum GrammarVocabulary {
    /// What a declaration, or a line of the head, begins with.
    public static let declarations = Set([
        "grammar", "use", "cite", "enum", "message", "tlv", "choose", "exchange", "gather", "layer", "session", "transform",
        "check",
        "example",
    ])

    /// Words inside declarations.
    public static let words = Set([
        "and", "any", "as", "blame", "but", "closed", "contested", "decode", "error", "event", "expect", "final", "given",
        "illegal",
        "in", "initial", "inverse", "keep", "let", "more", "near", "next", "nonce", "not", "note", "observe", "ok", "on", "open",
        "or",
        "otherwise", "outside", "part", "protected", "readonly", "refine", "request", "response", "resync", "secret", "see",
        "start",
        "state", "stop", "var", "warn",
        "when", "with", "yield",
    ])

    /// Types of fields, and dialects of tagged objects.
    public static let types = Set([
        "u8", "u16", "u16le", "u24", "u24le", "u32", "u32le", "u64", "uint", "bits", "bytes", "rest", "ascii", "bcd", "repeat",
        "ber",
        "simple", "compact",
    ])

    /// What expressions may ask for without a declaration.
    public static let functions = Set([
        "remaining", "peek", "count", "has", "number", "raw", "before", "pad", "unpad", "joined", "kept", "hex", "text",
    ])
}
