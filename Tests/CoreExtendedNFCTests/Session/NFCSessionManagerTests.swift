// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Foundation
import Synchronization
import Testing

/// A tag that only is there.
private struct StillTag: ISO7816TagTransporting {
    var initialAID: String { "" }
    var identifier: Data { Data([0x04, 0x01, 0x02, 0x03]) }
    func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("send") }
    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU { ResponseAPDU(statusWord: 0x9000) }
}

/// A manager whose tag comes when the test says so.
private final class FakeManager: NFCSessionManager, @unchecked Sendable {
    struct Seen: Sendable {
        var targets: [Set<PollingTarget>] = []
        var began: [String?] = []
        var ended: [String?] = []
        var alerts: [String] = []
        var closed = 0
    }

    let seen = Mutex(Seen())
    private let answer: @Sendable () async throws -> Void

    /// - Parameter answer: returns when the tag is there, or throws instead.
    init(_ answer: @escaping @Sendable () async throws -> Void) {
        self.answer = answer
        super.init(timeout: nil)
    }

    override func discoverTag(for targets: Set<PollingTarget>) async throws -> DiscoveredTag {
        seen.withLock { $0.targets.append(targets) }
        try await answer()
        return try DiscoveredTag(transport: StillTag()) { [self] in seen.withLock { $0.closed += 1 } }
    }

    override func sessionDidBegin(message: String?) { seen.withLock { $0.began.append(message) } }
    override func sessionDidEnd(errorMessage: String?) { seen.withLock { $0.ended.append(errorMessage) } }
    override func alertMessageDidChange(_ message: String) { seen.withLock { $0.alerts.append(message) } }

    /// Waits until the scan waits for a tag.
    func waitForDiscovery() async throws {
        while seen.withLock({ $0.targets.isEmpty }) { try await Task.sleep(for: .milliseconds(1)) }
    }
}

@Suite struct NFCSessionManagerTests {
    private let never: @Sendable () async throws -> Void = { try await Task.sleep(for: .seconds(600)) }

    @Test func aScanGivesTheTagAndTheSessionStaysOpenUntilItIsEnded() async throws {
        let manager = FakeManager {}
        let (info, transport) = try await manager.scan(for: [.all], message: "hold a card")
        #expect(info.type == .smartMX)
        #expect(info.uid == transport.identifier)
        #expect(manager.seen.withLock { $0.targets } == [Set(NFCSessionManager.PollingTarget.allCases)])
        #expect(manager.seen.withLock { $0.began } == ["hold a card"])
        #expect(manager.seen.withLock { $0.ended }.isEmpty)
        manager.setAlertMessage("reading")
        #expect(manager.alertMessage == "reading")
        manager.invalidate()
        manager.invalidate(errorMessage: "twice")
        manager.setAlertMessage("too late")
        #expect(manager.seen.withLock { $0.ended } == [nil])
        #expect(manager.seen.withLock { $0.alerts } == ["reading"])
        #expect(manager.seen.withLock { $0.closed } == 1)
        #expect(!manager.wasCanceledByUser)
    }

    @Test func theTargetsAreHandedOnAsTheyAre() async throws {
        let manager = FakeManager {}
        _ = try await manager.scan(for: [.iso14443, .iso18092])
        #expect(manager.seen.withLock { $0.targets } == [[.iso14443, .iso18092]])
    }

    @Test func onlyOneScanCanBePending() async throws {
        let manager = FakeManager(never)
        let first = Task { try await manager.scan() }
        try await manager.waitForDiscovery()
        await #expect(throws: NFCError.scanInProgress) { try await manager.scan() }
        manager.invalidate()
        await #expect(throws: NFCError.sessionInvalidatedByCaller) { try await first.value }
        #expect(manager.seen.withLock { $0.ended } == [nil])
        #expect(manager.seen.withLock { $0.began.count } == 1)
    }

    @Test func aCancelledTaskEndsTheSession() async throws {
        let manager = FakeManager(never)
        let scan = Task { try await manager.scan() }
        try await manager.waitForDiscovery()
        scan.cancel()
        await #expect(throws: CancellationError.self) { try await scan.value }
        #expect(manager.seen.withLock { $0.ended } == [nil])
    }

    @Test func aTagThatComesAfterTheCancellationIsClosed() async throws {
        let manager = FakeManager {
            // A source that does not look at its task.
            await withCheckedContinuation { continuation in
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(200)) { continuation.resume() }
            }
        }
        let scan = Task { try await manager.scan() }
        try await manager.waitForDiscovery()
        scan.cancel()
        await #expect(throws: CancellationError.self) { try await scan.value }
        #expect(manager.seen.withLock { $0.closed } == 1)
        #expect(manager.seen.withLock { $0.ended } == [nil])
    }

    @Test func aUserWhoCancelsIsToldNothing() async throws {
        let manager = FakeManager(never)
        let scan = Task { try await manager.scan() }
        try await manager.waitForDiscovery()
        manager.cancelByUser()
        await #expect(throws: NFCError.userCanceled) { try await scan.value }
        #expect(manager.wasCanceledByUser)
        #expect(manager.seen.withLock { $0.ended } == [nil])
    }

    @Test func aFailureThatRacedTheUsersCancelIsTheUsersCancel() async throws {
        let manager = FakeManager { throw TransportError(.tagConnectionLost) }
        _ = try? await manager.scan()
        #expect(!manager.wasCanceledByUser)
        let open = FakeManager {}
        _ = try await open.scan()
        open.cancelByUser()
        #expect(open.wasCanceledByUser)
        #expect(open.seen.withLock { $0.closed } == 1)
        // The next scan begins anew.
        _ = try await open.scan()
        #expect(!open.wasCanceledByUser)
    }

    @Test func aFailedDiscoveryEndsTheSessionBeforeItThrows() async throws {
        let manager = FakeManager { throw TransportError(.tagConnectionLost, code: 0x8010_0069) }
        await #expect(throws: NFCError.tagConnectionLost) { try await manager.scan() }
        let ended = manager.seen.withLock { $0.ended }
        #expect(ended.count == 1)
        #expect(ended.first??.isEmpty == false)
        // And another scan is possible.
        await #expect(throws: NFCError.tagConnectionLost) { try await manager.scan() }
    }

    @Test func aSecondScanEndsTheSessionOfTheFirst() async throws {
        let manager = FakeManager {}
        _ = try await manager.scan()
        _ = try await manager.scan()
        #expect(manager.seen.withLock { $0.ended } == [nil])
        #expect(manager.seen.withLock { $0.closed } == 1)
        manager.invalidate()
        #expect(manager.seen.withLock { $0.closed } == 2)
    }

    @Test func everyWayToStopIsACancellation() {
        #expect(NFCError.userCanceled.isNFCCancellation)
        #expect(NFCError.sessionInvalidatedByCaller.isNFCCancellation)
        #expect(CancellationError().isNFCCancellation)
        #expect(!NFCError.sessionTimeout.isNFCCancellation)
    }
}
