// SPDX-License-Identifier: MIT

/// Elements one after the other that only their owner changes: no counting of references and no look at whether they are
/// shared. What is asked for outside it is one spare element of zeros, which nothing else is kept in.
package struct Store<Element: BitwiseCopyable>: ~Copyable {
    @usableFromInline var base: UnsafeMutablePointer<Element>
    @usableFromInline var capacity: Int
    package private(set) var count = 0

    init(capacity: Int) {
        self.capacity = max(16, capacity)
        base = Self.room(self.capacity)
    }

    /// Room for elements and the spare one.
    private static func room(_ capacity: Int) -> UnsafeMutablePointer<Element> {
        let room = UnsafeMutablePointer<Element>.allocate(capacity: capacity + 1)
        UnsafeMutableRawPointer(room + capacity).initializeMemory(
            as: UInt8.self, repeating: 0, count: MemoryLayout<Element>.stride)
        return room
    }

    @inline(__always)
    private func place(_ index: Int) -> UnsafeMutablePointer<Element> {
        base + (UInt(bitPattern: index) < UInt(bitPattern: count) ? index : capacity)
    }

    init(repeating element: Element, count: Int) {
        self.init(capacity: count)
        base.initialize(repeating: element, count: count)
        self.count = count
    }

    deinit { base.deallocate() }

    func copy() -> Store {
        var result = Store(capacity: count)
        result.base.initialize(from: base, count: count)
        result.count = count
        return result
    }

    @inline(__always)
    package subscript(_ index: Int) -> Element {
        unsafeAddress { UnsafePointer(place(index)) }
        unsafeMutableAddress { place(index) }
    }

    @inline(__always)
    mutating func append(_ element: Element) {
        if count == capacity { grow(to: count + 1) }
        (base + count).initialize(to: element)
        count &+= 1
    }

    mutating func append(contentsOf elements: [Element]) {
        elements.withUnsafeBufferPointer { append(contentsOf: $0) }
    }

    mutating func append(contentsOf elements: UnsafeBufferPointer<Element>) {
        guard let source = elements.baseAddress, !elements.isEmpty else { return }
        if count + elements.count > capacity { grow(to: count + elements.count) }
        (base + count).update(from: source, count: elements.count)
        count += elements.count
    }

    @inline(never)
    private mutating func grow(to least: Int) {
        let wider = max(least, capacity * 2)
        let other = Self.room(wider)
        other.update(from: base, count: count)
        base.deallocate()
        (base, capacity) = (other, wider)
    }

    @inline(__always)
    mutating func removeAll() { count = 0 }

    @inline(__always)
    mutating func removeLast(_ number: Int = 1) { count = max(0, count - number) }

    @inline(__always)
    mutating func popLast() -> Element? {
        guard count > 0 else { return nil }
        count &-= 1
        return base[count]
    }

    /// The elements of `range`, which is cut to what is there.
    package func array(_ range: Range<Int>) -> [Element] {
        let range = range.clamped(to: 0..<count)
        return [Element](unsafeUninitializedCapacity: range.count) { buffer, size in
            if let start = buffer.baseAddress { start.initialize(from: base + range.lowerBound, count: range.count) }
            size = range.count
        }
    }

    /// The elements while `body` runs.
    @inline(__always)
    package func withElements<Result: ~Copyable>(_ range: Range<Int>, _ body: (UnsafeBufferPointer<Element>) -> Result) -> Result
    {
        let range = range.clamped(to: 0..<count)
        return body(UnsafeBufferPointer(start: base + range.lowerBound, count: range.count))
    }

    package var indices: Range<Int> { 0..<count }
    package var isEmpty: Bool { count == 0 }
    var all: [Element] { array(0..<count) }
}

extension Store where Element == UInt8 {
    /// Whether the octets of `range` are `octets`.
    func holds(_ octets: [UInt8], in range: Range<Int>) -> Bool {
        guard range.count == octets.count, range.lowerBound >= 0, range.upperBound <= count else { return false }
        return withElements(range) { $0.elementsEqual(octets) }
    }

    /// The big-endian number in `count` octets from `from`.
    @inline(__always)
    func number(_ from: Int, _ size: Int) -> UInt64 {
        var value: UInt64 = 0
        guard from >= 0, size >= 0, from <= count, size <= count - from else { return value }
        var place = base + from
        let end = place + size
        while place < end {
            value = value << 8 | UInt64(place.pointee)
            place += 1
        }
        return value
    }
}

/// A list that never changes, without references to anything; outside it there are zeros.
struct Table<Element: BitwiseCopyable>: @unchecked Sendable {
    private let base: UnsafeMutablePointer<Element>
    let count: Int

    init(_ elements: [Element]) {
        base = .allocate(capacity: elements.count + 1)
        count = elements.count
        UnsafeMutableRawPointer(base + count).initializeMemory(
            as: UInt8.self, repeating: 0, count: MemoryLayout<Element>.stride)
        elements.withUnsafeBufferPointer { source in
            if let start = source.baseAddress { base.initialize(from: start, count: source.count) }
        }
    }

    func free() { base.deallocate() }

    var indices: Range<Int> { 0..<count }

    @inline(__always)
    subscript(_ index: Int) -> Element {
        unsafeAddress {
            UnsafePointer(base + (UInt(bitPattern: index) < UInt(bitPattern: count) ? index : count))
        }
    }
}
