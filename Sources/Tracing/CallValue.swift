// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TagTransport
import TraceFile

/// An argument or result of a transport's structured call, on its way into a row: octets as hexadecimal text.
enum CallValue {
    case none
    case integer(Int)
    case bytes([UInt8])
    case data(Data)
    case list([Data])
    case flags([Bool])
    case range(NSRange)
    case systemInfo(ISO15693SystemInfo)
    case securityResponse(ISO15693SecurityResponse)

    var json: JSONValue {
        switch self {
        case .none: .null
        case .integer(let number): .integer(Int64(number))
        case .bytes(let octets): .string(Hex.encode(octets))
        case .data(let data): .string(Hex.encode(data))
        case .list(let list): .array(list.map { .string(Hex.encode($0)) })
        case .flags(let flags): .array(flags.map { .bool($0) })
        case .range(let range):
            .object(["location": .integer(Int64(range.location)), "length": .integer(Int64(range.length))])
        case .systemInfo(let info):
            .object([
                "uid": .string(Hex.encode(info.uid)), "dsfid": .integer(Int64(info.dsfid)), "afi": .integer(Int64(info.afi)),
                "blockSize": .integer(Int64(info.blockSize)), "blockCount": .integer(Int64(info.blockCount)),
                "icReference": .integer(Int64(info.icReference)),
            ])
        case .securityResponse(let response):
            .object(["responseFlags": .integer(Int64(response.responseFlags)), "data": .string(Hex.encode(response.data))])
        }
    }
}
