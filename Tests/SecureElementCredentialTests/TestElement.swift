// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets

@testable import SecureElementCredential

/// A secure element without a card: it keeps a list, answers `9000`, and fails when told to.
actor TestElement: SecureElement {
    static let head: [UInt8] = [0xF0, 0x00, 0x00, 0x00, 0x01]
    static let member: [UInt8] = [0xF0, 0x00, 0x00, 0x00, 0x02]
    static let domain: [UInt8] = [0xA0, 0x00, 0x00, 0x01, 0x51, 0x00, 0x00, 0x00]
    static let configuration = UUID(uuidString: "11111111-2222-4333-8444-555555555555") ?? UUID()

    private var list: [StoredCredential]
    /// What was asked, in order.
    private(set) var log: [String] = []
    private var failures: [String: SecureElementError] = [:]
    private var gates: [String: TestGate] = [:]
    private var failingInstallation = false
    private var transaction: [UInt8]?
    private(set) var isOpen = false
    /// Memory that only a reset clears.
    private(set) var clearOnReset: [UInt8] = []

    init() {
        let instance = StoredInstance(
            instanceAID: Self.head, packageAID: [0xF0, 0x01], moduleAID: [0xF0, 0x02], securityDomainAID: Self.domain, role: .head
        )
        var second = instance
        second.instanceAID = Self.member
        second.role = .member
        func credential(_ name: String, owner: String, users: [String] = [], isGovernmentID: Bool = false) -> StoredCredential {
            StoredCredential(
                identifier: UUID(), name: name, configuration: Self.configuration, installation: .installed,
                instances: [instance, second], owner: owner, users: users, isGovernmentID: isGovernmentID)
        }
        list = [
            credential("wallet", owner: "app"), credential("licence", owner: "state", users: ["app"], isGovernmentID: true),
            credential("foreign", owner: "other"),
        ]
    }

    // MARK: - What a test sets

    func fails(_ call: String, _ code: SecureElementError.Code?) { failures[call] = code.map { SecureElementError($0) } }
    func waits(_ call: String, at gate: TestGate?) { gates[call] = gate }
    func installationFails() { failingInstallation = true }
    func raises(_ data: [UInt8]) { transaction = data }
    func forgetLog() { log = [] }

    private func begin(_ call: String, _ text: String = "") async throws(SecureElementError) {
        log.append(text.isEmpty ? call : "\(call) \(text)")
        await gates[call]?.pass()
        if let failure = failures[call] { throw failure }
    }

    // MARK: - SecureElement

    func open() async throws(SecureElementError) {
        try await begin("open")
        isOpen = true
        clearOnReset = []
    }

    func close() async {
        log.append("close")
        isOpen = false
    }

    func information() async throws(SecureElementError) -> Session.SecureElementInfo? {
        try await begin("information")
        return .init(hardwareReleaseVersionInfo: "JCOP 8.0", secureElementPlatformSigningCertificate: Data([0x30, 0x00]))
    }

    func credentials() async throws(SecureElementError) -> [StoredCredential] {
        try await begin("credentials")
        return list
    }

    func knownCredential(_ identifier: UUID) async -> StoredCredential? { list.first { $0.identifier == identifier } }

    func pendingCredentials() async -> [UUID] { list.filter { $0.installation == .pending }.map(\.identifier) }

    func provision(_ request: ProvisioningRequest) async throws(SecureElementError) -> StoredCredential {
        try await begin("provision")
        guard request.configuration == Self.configuration else { throw SecureElementError(.unknownConfiguration) }
        let credential = StoredCredential(
            identifier: request.identifier, name: request.name, configuration: request.configuration, installation: .pending,
            owner: request.owner)
        list.append(credential)
        return credential
    }

    func install(_ identifier: UUID) async throws(SecureElementError) -> StoredCredential {
        try await begin("install")
        guard let index = list.firstIndex(where: { $0.identifier == identifier }) else {
            throw SecureElementError(.noSuchCredential)
        }
        list[index].installation = failingInstallation ? .failed : .installed
        if !failingInstallation { list[index].instances = list[0].instances }
        return list[index]
    }

    func delete(_ identifier: UUID) async throws(SecureElementError) {
        try await begin("delete")
        list.removeAll { $0.identifier == identifier }
    }

    func select(instance aid: [UInt8]) async throws(SecureElementError) { try await begin("select", Hex.encode(aid)) }

    func transceive(_ command: [UInt8]) async throws(SecureElementError) -> [UInt8] {
        try await begin("transceive", Hex.encode(command))
        if command.dropFirst().first == 0xD0 { clearOnReset = Array(command.dropFirst(5)) }
        return command.dropFirst().first == 0xB0 ? [0x6A, 0x82] : [0xCA, 0xFE, 0x90, 0x00]
    }

    func deselect() async throws(SecureElementError) { try await begin("deselect") }

    func authorize(instances: [[UInt8]]) async throws(SecureElementError) {
        try await begin("authorize", instances.map { Hex.encode($0) }.joined(separator: ","))
    }

    func activateContactless(instances: [[UInt8]]) async throws(SecureElementError) { try await begin("activate") }
    func deactivateContactless(instances: [[UInt8]]) async throws(SecureElementError) { try await begin("deactivate") }

    func contactless(_ command: [UInt8]) async throws(SecureElementError) -> ContactlessAnswer {
        try await begin("contactless", Hex.encode(command))
        defer { transaction = nil }
        return ContactlessAnswer(
            response: clearOnReset + [0x90, 0x00],
            transactions: transaction.map { [ContactlessAnswer.Transaction(instanceAID: Self.head, data: $0)] } ?? [])
    }

    func counter(ofSecurityDomain aid: [UInt8]) async throws(SecureElementError) -> Int? {
        try await begin("counter")
        return aid == Self.domain ? 7 : nil
    }
}
