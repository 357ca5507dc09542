// SPDX-License-Identifier: MIT

import CPCSCLite
import Glibc
import TagTransport

/// The functions of libpcsclite, found when the program runs, so that one without the library can still say what is missing.
///
/// On Linux LONG and DWORD are 64 bits wide, so that a return code such as `80100069` is a positive number; ``Code``
/// is its low 32 bits.
struct PCSCLibrary: Sendable {
    typealias Code = UInt32
    typealias Context = TD_LONG
    typealias Card = TD_LONG
    private typealias DWORD = TD_DWORD

    private typealias Establish =
        @convention(c) @Sendable (DWORD, UnsafeRawPointer?, UnsafeRawPointer?, UnsafeMutablePointer<Context>?) -> TD_LONG
    private typealias OnContext = @convention(c) @Sendable (Context) -> TD_LONG
    private typealias ListReaders =
        @convention(c) @Sendable (Context, UnsafePointer<CChar>?, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<DWORD>?) ->
        TD_LONG
    private typealias GetStatusChange =
        @convention(c) @Sendable (Context, DWORD, UnsafeMutablePointer<TD_READERSTATE>?, DWORD) -> TD_LONG
    private typealias Connect =
        @convention(c) @Sendable (
            Context, UnsafePointer<CChar>?, DWORD, DWORD, UnsafeMutablePointer<Card>?, UnsafeMutablePointer<DWORD>?
        ) -> TD_LONG
    private typealias Reconnect = @convention(c) @Sendable (Card, DWORD, DWORD, DWORD, UnsafeMutablePointer<DWORD>?) -> TD_LONG
    private typealias OnCard = @convention(c) @Sendable (Card) -> TD_LONG
    private typealias OnCardWith = @convention(c) @Sendable (Card, DWORD) -> TD_LONG
    private typealias Status =
        @convention(c) @Sendable (
            Card, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<DWORD>?, UnsafeMutablePointer<DWORD>?,
            UnsafeMutablePointer<DWORD>?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<DWORD>?
        ) -> TD_LONG
    private typealias Transmit =
        @convention(c) @Sendable (
            Card, UnsafePointer<TD_IO_REQUEST>?, UnsafePointer<UInt8>?, DWORD, UnsafeMutablePointer<TD_IO_REQUEST>?,
            UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<DWORD>?
        ) -> TD_LONG
    private typealias Control =
        @convention(c) @Sendable (
            Card, DWORD, UnsafeRawPointer?, DWORD, UnsafeMutableRawPointer?, DWORD, UnsafeMutablePointer<DWORD>?
        ) -> TD_LONG
    private typealias GetAttribute =
        @convention(c) @Sendable (Card, DWORD, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<DWORD>?) -> TD_LONG
    private typealias SetAttribute = @convention(c) @Sendable (Card, DWORD, UnsafePointer<UInt8>?, DWORD) -> TD_LONG

    private let establishContext: Establish
    private let releaseContext: OnContext
    private let cancelContext: OnContext
    private let listReaders: ListReaders
    private let getStatusChange: GetStatusChange
    private let connectCard: Connect
    private let reconnectCard: Reconnect
    private let disconnectCard: OnCardWith
    private let beginTransactionOnCard: OnCard
    private let endTransactionOnCard: OnCardWith
    private let statusOfCard: Status
    private let transmitToCard: Transmit
    private let controlReader: Control
    private let getAttribute: GetAttribute
    private let setAttribute: SetAttribute

    static let fileName = "libpcsclite.so.1"

    /// The library, or why it cannot be used.
    static let shared: Result<PCSCLibrary, TransportError> = {
        guard let handle = dlopen(fileName, RTLD_NOW | RTLD_LOCAL) else {
            return .failure(
                TransportError(.serviceUnavailable, detail: "\(fileName) is not on this machine: sudo apt install libpcsclite1")
            )
        }
        guard let library = PCSCLibrary(handle) else {
            return .failure(TransportError(.serviceUnavailable, detail: "\(fileName) lacks functions of PC/SC"))
        }
        return .success(library)
    }()

    private init?(_ handle: UnsafeMutableRawPointer) {
        func function<Function>(_ name: String, _: Function.Type) -> Function? {
            dlsym(handle, name).map { unsafeBitCast($0, to: Function.self) }
        }
        guard let establish = function("SCardEstablishContext", Establish.self),
            let release = function("SCardReleaseContext", OnContext.self),
            let cancel = function("SCardCancel", OnContext.self),
            let list = function("SCardListReaders", ListReaders.self),
            let change = function("SCardGetStatusChange", GetStatusChange.self),
            let connect = function("SCardConnect", Connect.self),
            let reconnect = function("SCardReconnect", Reconnect.self),
            let disconnect = function("SCardDisconnect", OnCardWith.self),
            let begin = function("SCardBeginTransaction", OnCard.self),
            let end = function("SCardEndTransaction", OnCardWith.self),
            let status = function("SCardStatus", Status.self),
            let transmit = function("SCardTransmit", Transmit.self),
            let control = function("SCardControl", Control.self),
            let get = function("SCardGetAttrib", GetAttribute.self),
            let set = function("SCardSetAttrib", SetAttribute.self)
        else { return nil }
        establishContext = establish
        releaseContext = release
        cancelContext = cancel
        listReaders = list
        getStatusChange = change
        connectCard = connect
        reconnectCard = reconnect
        disconnectCard = disconnect
        beginTransactionOnCard = begin
        endTransactionOnCard = end
        statusOfCard = status
        transmitToCard = transmit
        controlReader = control
        getAttribute = get
        setAttribute = set
    }

    // MARK: - Contexts

    func establish() throws(PCSCError) -> Context {
        let systemScope: DWORD = 2
        var context: Context = 0
        try check(establishContext(systemScope, nil, nil, &context), "SCardEstablishContext")
        return context
    }

    func release(_ context: Context) { _ = releaseContext(context) }

    func cancel(_ context: Context) { _ = cancelContext(context) }

    /// The names of the readers; none is an empty list here, not an error.
    func readers(_ context: Context) throws(PCSCError) -> [String] {
        // A reader can appear between asking for the size and asking for the names.
        for _ in 0..<8 {
            var size: DWORD = 0
            let sizing = code(listReaders(context, nil, nil, &size))
            if sizing == PCSCError.noReadersAvailable { return [] }
            try check(TD_LONG(sizing), "SCardListReaders")
            guard size > 0, size <= 1 << 20 else { return [] }
            var names = [CChar](repeating: 0, count: Int(size))
            let result = code(listReaders(context, nil, &names, &size))
            if result == PCSCError.insufficientBuffer { continue }
            if result == PCSCError.noReadersAvailable { return [] }
            try check(TD_LONG(result), "SCardListReaders")
            return names.prefix(Int(min(size, DWORD(names.count)))).split(separator: 0).map {
                String(decoding: $0.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            }
        }
        return []
    }

    /// Waits until a reader's state differs from the one given, and returns the new states.
    ///
    /// - Parameter milliseconds: nil waits for ever.
    func statusChange(
        _ context: Context, _ states: [RawReaderState], milliseconds: UInt32?
    ) throws(PCSCError) -> [RawReaderState] {
        let names = states.map { strdup($0.name) }
        defer { names.forEach { free($0) } }
        var table = zip(states, names).map { state, name in
            var row = TD_READERSTATE()
            row.szReader = UnsafePointer(name)
            row.dwCurrentState = DWORD(state.flags)
            return row
        }
        let timeout = milliseconds.map { DWORD($0) } ?? 0xFFFF_FFFF
        try check(getStatusChange(context, timeout, &table, DWORD(table.count)), "SCardGetStatusChange")
        return zip(states, table).map { state, row in
            let atr = withUnsafeBytes(of: row.rgbAtr) { Array($0.prefix(Int(min(row.cbAtr, DWORD(TD_MAX_ATR_SIZE))))) }
            return RawReaderState(name: state.name, flags: UInt32(truncatingIfNeeded: row.dwEventState), atr: atr)
        }
    }

    // MARK: - Cards

    func connect(
        _ context: Context, _ reader: String, sharing: UInt32, protocols: UInt32
    ) throws(PCSCError) -> (card: Card, active: UInt32) {
        var card: Card = 0
        var active: DWORD = 0
        try check(connectCard(context, reader, DWORD(sharing), DWORD(protocols), &card, &active), "SCardConnect")
        return (card, UInt32(truncatingIfNeeded: active))
    }

    func reconnect(_ card: Card, sharing: UInt32, protocols: UInt32, initialization: UInt32) throws(PCSCError) -> UInt32 {
        var active: DWORD = 0
        try check(
            reconnectCard(card, DWORD(sharing), DWORD(protocols), DWORD(initialization), &active), "SCardReconnect"
        )
        return UInt32(truncatingIfNeeded: active)
    }

    func disconnect(_ card: Card, disposition: UInt32) throws(PCSCError) {
        try check(disconnectCard(card, DWORD(disposition)), "SCardDisconnect")
    }

    func beginTransaction(_ card: Card) throws(PCSCError) { try check(beginTransactionOnCard(card), "SCardBeginTransaction") }

    func endTransaction(_ card: Card, disposition: UInt32) throws(PCSCError) {
        try check(endTransactionOnCard(card, DWORD(disposition)), "SCardEndTransaction")
    }

    func status(_ card: Card) throws(PCSCError) -> (state: UInt32, active: UInt32, atr: [UInt8]) {
        var name = [CChar](repeating: 0, count: 256)
        var nameSize = DWORD(name.count)
        var state: DWORD = 0
        var active: DWORD = 0
        var atr = [UInt8](repeating: 0, count: Int(TD_MAX_ATR_SIZE))
        var atrSize = DWORD(atr.count)
        try check(statusOfCard(card, &name, &nameSize, &state, &active, &atr, &atrSize), "SCardStatus")
        return (
            UInt32(truncatingIfNeeded: state), UInt32(truncatingIfNeeded: active),
            Array(atr.prefix(Int(min(atrSize, DWORD(atr.count)))))
        )
    }

    func transmit(
        _ card: Card, activeProtocol: UInt32, _ command: [UInt8], into buffer: UnsafeMutableBufferPointer<UInt8>
    ) throws(PCSCError) -> [UInt8] {
        var request = TD_IO_REQUEST(
            dwProtocol: UInt(activeProtocol), cbPciLength: UInt(MemoryLayout<TD_IO_REQUEST>.size)
        )
        var size = DWORD(buffer.count)
        try check(
            transmitToCard(card, &request, command, DWORD(command.count), nil, buffer.baseAddress, &size), "SCardTransmit"
        )
        return Array(buffer.prefix(Int(min(size, DWORD(buffer.count)))))
    }

    func control(
        _ card: Card, code: UInt32, _ input: [UInt8], into buffer: UnsafeMutableBufferPointer<UInt8>
    ) throws(PCSCError) -> [UInt8] {
        var size: DWORD = 0
        try check(
            controlReader(
                card, DWORD(code), input, DWORD(input.count), UnsafeMutableRawPointer(buffer.baseAddress), DWORD(buffer.count),
                &size
            ),
            "SCardControl"
        )
        return Array(buffer.prefix(Int(min(size, DWORD(buffer.count)))))
    }

    /// The most octets of an attribute that pcsc-lite carries.
    private var longestAttribute: Int { 264 }

    func attribute(_ card: Card, _ id: UInt32) throws(PCSCError) -> [UInt8] {
        var value = [UInt8](repeating: 0, count: longestAttribute)
        var size = DWORD(value.count)
        try check(getAttribute(card, DWORD(id), &value, &size), "SCardGetAttrib")
        return Array(value.prefix(Int(min(size, DWORD(value.count)))))
    }

    func setAttribute(_ card: Card, _ id: UInt32, _ value: [UInt8]) throws(PCSCError) {
        try check(setAttribute(card, DWORD(id), value, DWORD(value.count)), "SCardSetAttrib")
    }

    private func code(_ result: TD_LONG) -> Code { Code(truncatingIfNeeded: result) }

    private func check(_ result: TD_LONG, _ call: String) throws(PCSCError) {
        guard code(result) == 0 else { throw PCSCError(code: code(result), call: call) }
    }
}
