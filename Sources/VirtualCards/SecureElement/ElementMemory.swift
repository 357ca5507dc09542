// SPDX-License-Identifier: MIT

/// What the element keeps without power. A value: a command works on it whole, and is written to the store whole or not at all.
struct ElementMemory: Sendable {
    var cardState: UInt8 = ElementState.secured
    /// How often it had power, so that the same seed gives other numbers each time.
    var boots: UInt32 = 0
    /// In the order of installation; the issuer security domain first.
    var applications: [ElementApplication] = []
    var files: [ElementFile] = []
    /// Load files whose load has begun, and those whose load a loss of power ended.
    var pending: [[UInt8]] = []
    var failed: [[UInt8]] = []

    var nonVolatileMemory: Int
    var volatileMemory: Int

    /// What an entry of the registry takes.
    static let entryLength = 128

    var usedNonVolatile: Int {
        applications.reduce(0) { $0 + $1.nonVolatile + Self.entryLength } + files.reduce(0) { $0 + $1.length + Self.entryLength }
    }
    var freeNonVolatile: Int { max(0, nonVolatileMemory - usedNonVolatile) }
    var freeVolatile: Int { max(0, volatileMemory - applications.reduce(0) { $0 + $1.volatile }) }

    func index(of aid: [UInt8]) -> Int? { applications.firstIndex { $0.aid == aid } }
    func application(_ aid: [UInt8]) -> ElementApplication? { applications.first { $0.aid == aid } }
    func file(_ aid: [UInt8]) -> ElementFile? { files.first { $0.aid == aid } }

    /// Whether `aid` is, or belongs in any number of steps to, the security domain `domain`.
    func belongs(_ aid: [UInt8], to domain: [UInt8]) -> Bool {
        var current = aid
        // A chain is no longer than there are applications.
        for _ in 0...applications.count {
            if current == domain { return true }
            guard let next = application(current)?.domain ?? file(current)?.domain, next != current else { return false }
            current = next
        }
        return false
    }

    /// The domain whose keys open a channel to `aid`: itself, or the next above it that has any (GPC 7.5.2).
    func keyHolder(of aid: [UInt8]) -> Int? {
        var current = aid
        for _ in 0...applications.count {
            guard let place = index(of: current) else { return nil }
            if !(applications[place].keySets.isEmpty) { return place }
            guard applications[place].domain != current else { return nil }
            current = applications[place].domain
        }
        return nil
    }
}

/// Life cycle states (GPC tables 11-3 to 11-6).
enum ElementState {
    static let loaded: UInt8 = 0x01
    static let installed: UInt8 = 0x03
    static let selectable: UInt8 = 0x07
    static let personalized: UInt8 = 0x0F
    static let lockBit: UInt8 = 0x80

    static let ready: UInt8 = 0x01
    static let initialized: UInt8 = 0x07
    static let secured: UInt8 = 0x0F
    static let locked: UInt8 = 0x7F
    static let terminated: UInt8 = 0xFF
}

/// Names that an element is delivered with.
enum ElementNames {
    static let issuerDomain: [UInt8] = [0xA0, 0x00, 0x00, 0x01, 0x51, 0x00, 0x00, 0x00]
    static let domainFile: [UInt8] = [0xA0, 0x00, 0x00, 0x01, 0x51, 0x53, 0x50]
    static let domainModule: [UInt8] = [0xA0, 0x00, 0x00, 0x01, 0x51, 0x53, 0x50, 0x41]
    static let contactlessRegistry: [UInt8] = [0xA0, 0x00, 0x00, 0x01, 0x51, 0x43, 0x52, 0x53, 0x00]
    static let contactlessFile: [UInt8] = [0xA0, 0x00, 0x00, 0x01, 0x51, 0x43, 0x52]
    /// `2PAY.SYS.DDF01` (EMV Contactless Book B 3.3.1).
    static let paymentEnvironment = Array("2PAY.SYS.DDF01".utf8)
    static let delivered = [issuerDomain, contactlessRegistry]
}

/// A load file of the registry. Its code is the element's own; its length counts.
struct ElementFile: Sendable, Equatable {
    var aid: [UInt8]
    var version: [UInt8]
    var modules: [[UInt8]]
    var domain: [UInt8]
    var length: Int
}

/// A key set of a security domain: three keys, with identifiers 1 to 3.
struct ElementKeySet: Sendable, Equatable {
    var version: UInt8
    var isAES: Bool
    var keys: [[UInt8]]
    /// Two octets for SCP02, three for SCP03.
    var counter: UInt32 = 0
}

/// An application or a security domain of the registry.
struct ElementApplication: Sendable {
    var aid: [UInt8]
    var file: [UInt8]
    var module: [UInt8]
    var privileges: UInt32
    var state: UInt8
    /// The security domain that it belongs to; its own name for the issuer security domain.
    var domain: [UInt8]
    var nonVolatile = 0
    var volatile = 0
    /// Amendment C: 00 deactivated, 01 activated, 80 non-activatable; how often the entry changed; the head of its group.
    var contactless: UInt8 = 0x80
    var updates: UInt16 = 0
    var head: [UInt8] = []
    var isPersonalized = false

    /// A security domain's keys, the first key set first, and its data objects.
    var keySets: [ElementKeySet] = []
    var objects: [ElementObject] = []
    /// Nil for a security domain and for the contactless registry.
    var applet: (any ElementApplet)?

    var isSecurityDomain: Bool { privileges & 0x80_0000 != 0 }
    var isLocked: Bool { state & ElementState.lockBit != 0 }
    func has(_ privilege: UInt32) -> Bool { privileges & privilege == privilege }
}

/// A data object that STORE DATA put into a security domain.
struct ElementObject: Sendable, Equatable {
    var tag: UInt16
    var value: [UInt8]
}
