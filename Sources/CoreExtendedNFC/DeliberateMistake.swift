// SPDX-License-Identifier: MIT

/// A mistake that the library makes on purpose, so that tests can show that replaying recorded sessions finds it.
///
/// Nobody outside this package can set one.
package enum DeliberateMistake: Sendable, CaseIterable {
    /// Secure messaging and EV2 count one command too many.
    case counterOffByOne
    /// EXTERNAL AUTHENTICATE of Basic Access Control asks for 256 octets, not for 40.
    case otherLe
    /// Basic Access Control is not tried after PACE was refused.
    case fallbackSkipped
    /// The code of an answer under secure messaging is not looked at.
    case macNotChecked

    @TaskLocal package static var made: DeliberateMistake?
}
