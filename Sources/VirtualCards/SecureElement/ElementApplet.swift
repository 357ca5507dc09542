// SPDX-License-Identifier: MIT

/// What runs on the simulated element: a value whose copies are the same applet at the same point of its life.
///
/// The element selects it, hands it every command but SELECT and MANAGE CHANNEL, and writes ``stored`` to its memory after each.
protocol ElementApplet: Sendable {
    /// The module whose code this is.
    static var moduleAID: [UInt8] { get }
    /// Octets of memory that an instance takes: kept, and lost with power.
    static var memory: (nonVolatile: Int, volatile: Int) { get }

    /// - Parameter parameters: the object `C9` of INSTALL [for install].
    init(parameters: [UInt8]) throws(StatusWord)
    /// The applet that ``stored`` came from; nil when it came from none.
    init?(stored: [UInt8])

    /// What outlives the loss of power.
    var stored: [UInt8] { get }

    /// The answer to SELECT: what stands in the file control information's object `A5`.
    mutating func select(_ context: AppletContext) -> [UInt8]
    mutating func process(_ command: CardCommand, _ context: inout AppletContext) throws(StatusWord) -> [UInt8]
    mutating func deselect()
    /// Memory of the kind CLEAR_ON_RESET is cleared.
    mutating func reset()

    /// A block of STORE DATA. Nothing of a personalization holds before its last block.
    mutating func store(_ data: [UInt8], isLast: Bool) throws(StatusWord)
    /// The person has authorized a use. Returns whether the applet takes authorizations.
    mutating func authorize(_ token: [UInt8]) -> Bool
}

extension ElementApplet {
    mutating func deselect() {}
    mutating func reset() {}
    mutating func authorize(_ token: [UInt8]) -> Bool { false }
    mutating func store(_ data: [UInt8], isLast: Bool) throws(StatusWord) { throw .instructionNotSupported }
}

/// What an applet may know and do while it runs.
struct AppletContext: Sendable {
    let aid: [UInt8]
    let isContactless: Bool
    /// Transaction events to raise.
    var events: [[UInt8]] = []
}

enum ElementApplets {
    static let all: [any ElementApplet.Type] = [PaymentApplet.self, IdentityApplet.self, LoyaltyApplet.self]

    static func type(for module: [UInt8]) -> any ElementApplet.Type {
        all.first { $0.moduleAID == module } ?? UnknownApplet.self
    }
}

/// Stands for code that the element does not have: it can be installed, selected and deleted, and knows no command.
struct UnknownApplet: ElementApplet {
    static let moduleAID: [UInt8] = []
    static let memory = (nonVolatile: 256, volatile: 0)
    var stored: [UInt8] { [] }
    init(parameters: [UInt8]) throws(StatusWord) {}
    init?(stored: [UInt8]) {}
    mutating func select(_ context: AppletContext) -> [UInt8] { [] }
    mutating func process(_ command: CardCommand, _ context: inout AppletContext) throws(StatusWord) -> [UInt8] {
        throw .instructionNotSupported
    }
}
