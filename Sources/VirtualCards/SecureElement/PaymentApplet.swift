// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// A payment applet like a wallet's, over the commands of EMV Book 3: it pays once for each authorization of the person.
///
/// Personalization takes BER-TLV: `5A` number, `5F24` expiry, `50` label, `DF01` an AES key of 16 octets.
struct PaymentApplet: ElementApplet {
    static let moduleAID = SpecimenPackage.payment.moduleAID
    static let memory = (nonVolatile: 1_024, volatile: 128)

    private var number: [UInt8] = []
    private var expiry: [UInt8] = [0x30, 0x12, 0x31]
    private var label = Array("TAPDECK PAY".utf8)
    private var key: [UInt8] = []
    /// Application transaction counter.
    private var counter: UInt16 = 0

    /// CLEAR_ON_RESET: outlives a change from the wired to the contactless interface.
    private var isAuthorized = false
    /// CLEAR_ON_DESELECT.
    private var isStarted = false

    init(parameters: [UInt8]) throws(StatusWord) {
        if !parameters.isEmpty { label = Array(parameters.prefix(16)) }
    }

    init?(stored: [UInt8]) {
        var reader = FieldReader(stored)
        do throws(OutOfOctets) {
            number = try reader.field()
            expiry = try reader.field()
            label = try reader.field()
            key = try reader.field()
            counter = UInt16(truncatingIfNeeded: try reader.number())
        } catch {
            return nil
        }
    }

    var stored: [UInt8] {
        var writer = FieldWriter()
        for field in [number, expiry, label, key] { writer.add(field) }
        writer.add(number: UInt64(counter), octets: 2)
        return writer.octets
    }

    mutating func select(_ context: AppletContext) -> [UInt8] { TLV.encode(0x50, label) + TLV.encode(0x87, [0x01]) }

    mutating func deselect() { isStarted = false }

    mutating func reset() {
        isStarted = false
        isAuthorized = false
    }

    mutating func authorize(_ token: [UInt8]) -> Bool {
        isAuthorized = !token.isEmpty
        return isAuthorized
    }

    mutating func store(_ data: [UInt8], isLast: Bool) throws(StatusWord) {
        guard let objects = try? TLV.parse(data, TLVRules(allowsFiller: false)) else { throw .wrongData }
        for object in objects {
            let value = Array(object.value)
            switch object.tag {
            case 0x5A where (1...10).contains(value.count): number = value
            case 0x5F24 where value.count == 3: expiry = value
            case 0x50 where (1...16).contains(value.count): label = value
            case 0xDF01 where value.count == 16: key = value
            default: throw .wrongData
            }
        }
        guard !isLast || (!number.isEmpty && !key.isEmpty) else { throw .wrongData }
    }

    mutating func process(_ command: CardCommand, _ context: inout AppletContext) throws(StatusWord) -> [UInt8] {
        switch (command.cla & 0xFC, command.ins) {
        case (0x80, 0xA8): return try start(command)
        case (0x00, 0xB2):
            guard command.p1 == 0x01, command.p2 == 0x0C else { throw .recordNotFound }
            guard !number.isEmpty else { throw .conditionsNotSatisfied }
            return TLV.encode(0x70, TLV.encode(0x5A, number) + TLV.encode(0x5F24, expiry))
        case (0x80, 0xAE): return try pay(command)
        case (0x80, 0xCA):
            guard command.parameters == 0x9F36 else { throw .referencedDataNotFound }
            return TLV.encode(0x9F36, counterOctets)
        default: throw .instructionNotSupported
        }
    }

    private var counterOctets: [UInt8] { [UInt8(truncatingIfNeeded: counter >> 8), UInt8(truncatingIfNeeded: counter)] }

    /// GET PROCESSING OPTIONS: no PDOL, one record.
    private mutating func start(_ command: CardCommand) throws(StatusWord) -> [UInt8] {
        guard command.data == [0x83, 0x00] else { throw .wrongData }
        guard !key.isEmpty, isAuthorized, counter < .max else { throw .conditionsNotSatisfied }
        counter += 1
        isStarted = true
        return TLV.encode(0x80, [0x00, 0x80] + [0x08, 0x01, 0x01, 0x00])
    }

    /// GENERATE AC: a request for authorization, whose cryptogram is an AES CMAC, cut to eight octets, over data and counter.
    private mutating func pay(_ command: CardCommand) throws(StatusWord) -> [UInt8] {
        guard command.p1 == 0x80, command.p2 == 0x00 else { throw .wrongParameters }
        guard isStarted, isAuthorized, !command.data.isEmpty else { throw .conditionsNotSatisfied }
        isStarted = false
        isAuthorized = false
        guard let mac = try? CMAC.authenticate(command.data + counterOctets, key: key) else { throw .conditionsNotSatisfied }
        return TLV.encode(
            0x77,
            TLV.encode(0x9F27, [0x80]) + TLV.encode(0x9F36, counterOctets) + TLV.encode(0x9F26, Array(mac.prefix(8))))
    }
}
