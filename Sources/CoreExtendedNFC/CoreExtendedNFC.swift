// SPDX-License-Identifier: MIT

@_exported import TagTransport

/// The card library's high-level flows: a namespace.
///
/// Flows take `any NFCTagTransport` and never start or end a session unless their name has a `manager:`. Everything random
/// and every time they use comes from `CardEnvironment.current`. They throw ``NFCError``; beside it only `CancellationError` and
/// `EnvironmentError` come through.
public enum CoreExtendedNFC {}
