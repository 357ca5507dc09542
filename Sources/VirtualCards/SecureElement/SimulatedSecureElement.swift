// SPDX-License-Identifier: MIT

import Synchronization

/// A secure element in this process, with a wired interface and a contactless one to the same contents.
///
/// It may be shared: calls from several threads are answered one after another. Power on the wired interface resets the element; power on a
/// contactless one only ends what was selected there, so that memory that is cleared on reset lives through it.
public final class SimulatedSecureElement: Sendable {
    private let machine: Mutex<SecureElementMachine>
    private let listener = Mutex<(@Sendable (SecureElementEvent) -> Void)?>(nil)

    /// - Throws: ``SecureElementStoreError`` when the configuration names a directory that cannot be used.
    public init(_ configuration: SecureElementConfiguration = SecureElementConfiguration()) throws(SecureElementStoreError) {
        machine = Mutex(try SecureElementMachine(configuration))
    }

    /// The element as a contact card: `VirtualCardTransport(element.wiredCard())` is a transport to it.
    public func wiredCard() -> VirtualCard {
        VirtualCard(kind: "secure-element", machine: SecureElementFace(element: self, isContactless: false, instances: []))
    }

    /// The element as a contactless card: the reader reaches those of `instances` that are activated in the contactless registry,
    /// and through a PPSE those of them that pay.
    public func contactlessCard(instances: [[UInt8]]) -> VirtualCard {
        VirtualCard(
            kind: "secure-element", machine: SecureElementFace(element: self, isContactless: true, instances: instances),
            identifier: [0x08, 0x54, 0x44, 0x01])
    }

    /// Is told each event that an applet raises, after the answer to the command is made and before it is handed out.
    public func onEvent(_ listener: (@Sendable (SecureElementEvent) -> Void)?) {
        self.listener.withLock { $0 = listener }
    }

    /// Tells an applet that the person has authorized its use, as a broker application would (GPC_SPE_157); lost at a reset.
    ///
    /// - Returns: false when there is no such instance, or one that takes no authorization.
    @discardableResult
    public func deliver(authorization token: [UInt8], to aid: [UInt8]) -> Bool {
        machine.withLock { $0.deliver(token, to: aid) }
    }

    /// What is on the element beside what it is delivered with.
    public func contents() -> [SecureElementContent] { machine.withLock { $0.contents } }

    /// Free non-volatile memory in octets.
    public var freeMemory: Int { machine.withLock { $0.memory.freeNonVolatile } }

    func answer(_ command: [UInt8], isContactless: Bool, instances: [[UInt8]]) -> [UInt8] {
        let (answer, events) = machine.withLock { machine in
            let answer = machine.answer(command, isContactless: isContactless, instances: instances)
            return (answer, machine.takeEvents())
        }
        if !events.isEmpty, let listener = listener.withLock({ $0 }) { events.forEach(listener) }
        return answer
    }

    func powerOn(isContactless: Bool) {
        machine.withLock { $0.powerOn(isContactless: isContactless) }
    }
}

/// One interface of a shared element. Copies of it are the same element.
struct SecureElementFace: CardMachine {
    let element: SimulatedSecureElement
    let isContactless: Bool
    let instances: [[UInt8]]

    var atr: [UInt8] { isContactless ? SecureElementMachine.contactlessATR : SecureElementMachine.contactATR }

    mutating func powerOn() { element.powerOn(isContactless: isContactless) }

    mutating func answer(_ command: [UInt8]) -> [UInt8] {
        element.answer(command, isContactless: isContactless, instances: instances)
    }
}
