// SPDX-License-Identifier: MIT

import Synchronization

extension CredentialSession {
    /// The right to present a credential without being interrupted. It ends with ``relinquish()``, with its last reference, and
    /// by itself after a minute (limit L5).
    public final class PresentmentIntentAssertion: Sendable {
        /// Whether the right is still held.
        public enum State: Equatable, Hashable, Sendable {
            case active
            case invalid
        }

        private let device: CredentialDevice
        private let number: Int
        private let link: CredentialSession.Link
        private let session: CredentialDevice.WeakReference

        init(device: CredentialDevice, number: Int, link: CredentialSession.Link, session: CredentialSession) {
            self.device = device
            self.number = number
            self.link = link
            self.session = CredentialDevice.WeakReference(session)
        }

        deinit {
            guard let now = link.now else { return }
            device.shared.withLock { $0.ledger.forget(number, now: now) }
        }

        /// The state now.
        public var state: State {
            get async {
                await session.value?.settle()
                return device.shared.withLock { $0.ledger.state(of: number) } == .active ? .active : .invalid
            }
        }

        /// Ends the assertion. On one that has ended already nothing happens.
        ///
        /// - Throws: ``CredentialSession/ErrorCode``: `presentmentIntentAssertionTimeout` when it had ended by itself.
        public func relinquish() async throws {
            let call = link.observer?.began("relinquish()", [])
            await session.value?.settle()
            let before = device.shared.withLock { $0.ledger.state(of: number) }
            end()
            await session.value?.setAlarm()
            if before == .timedOut {
                if let call { link.observer?.ended(call, .failure(.presentmentIntentAssertionTimeout)) }
                throw ErrorCode.presentmentIntentAssertionTimeout
            }
            if let call { link.observer?.ended(call, .success([])) }
        }

        private func end() {
            guard let now = link.now else { return }
            device.shared.withLock { $0.ledger.end(number, now: now) }
        }
    }
}

extension CredentialDevice {
    /// A session that is not kept alive.
    final class WeakReference: @unchecked Sendable {
        // Unchecked: set once; reading a weak reference is safe from every thread.
        private(set) weak var value: CredentialSession?

        init(_ value: CredentialSession) { self.value = value }
    }
}
