// SPDX-License-Identifier: MIT

extension Machine {
    mutating func emitTable(_ index: Int, _ source: inout Emission.Source, _ emission: inout Emission, depth: Int) {
        let table = program.tables.tagTables[index]
        if emission.given != nil {
            for entry in table.entries where emission.present.contains(entry.node) {
                var inside = Emission.Source(children: [])
                let slot = program.tables.nodes[entry.node].slot
                var octets: [UInt8] = []
                if slot >= 0, let value = emission.given?[Int(slot)] {
                    octets = value
                } else if entry.code >= 0 {
                    let start = emission.octets.count
                    _ = emit(entry.code, &inside, &emission, depth: depth + 1)
                    octets = Array(emission.octets[start...])
                    emission.octets.removeLast(octets.count)
                }
                emission.octets += head(table.dialect, entry.tag, octets.count) + octets
            }
            return
        }
        while source.next < source.children.count {
            flush(&source, &emission)
            guard source.next < source.children.count else { return }
            let draft = source.children[source.next]
            let entry = table.entries.first { $0.node == draft.node }
            guard entry != nil || draft.node == Int(Node.unknownTag) else { return }
            source.next += 1
            var inside = Emission.Source(children: draft.children)
            let start = emission.octets.count
            if let entry, entry.code >= 0 {
                if program.tables.code[entry.code].op == .choose {
                    inside.children.insert(Draft(node: -1, number: draft.number), at: 0)
                }
                _ = emit(entry.code, &inside, &emission, depth: depth + 1)
            } else {
                for child in draft.children { emission.octets += child.octets ?? [] }
            }
            let header = draft.header ?? head(table.dialect, entry?.tag ?? 0, emission.octets.count - start)
            emission.octets.insert(contentsOf: header, at: start)
            for (node, place) in emission.open where place.start >= start {
                emission.open[node] = (place.start + header.count, place.count)
            }
        }
    }

    private func head(_ dialect: Dialect, _ tag: UInt32, _ count: Int) -> [UInt8] {
        switch dialect {
        case .compact: return [UInt8(truncatingIfNeeded: tag << 4) | UInt8(truncatingIfNeeded: min(15, count))]
        case .simple:
            let first = UInt8(truncatingIfNeeded: tag)
            return count < 0xFF
                ? [first, UInt8(truncatingIfNeeded: count)]
                : [first, 0xFF, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
        case .ber:
            var octets: [UInt8] = []
            for shift in stride(from: UInt32(24), through: 0, by: -8) where tag >> shift != 0 || shift == 0 {
                octets.append(UInt8(truncatingIfNeeded: tag >> shift))
            }
            if count < 0x80 { return octets + [UInt8(truncatingIfNeeded: count)] }
            var length: [UInt8] = []
            for shift in stride(from: 24, through: 0, by: -8) where count >> shift != 0 {
                length.append(UInt8(truncatingIfNeeded: count >> shift))
            }
            return octets + [0x80 | UInt8(truncatingIfNeeded: length.count)] + length
        }
    }
}
