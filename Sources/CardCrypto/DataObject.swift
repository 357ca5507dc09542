// SPDX-License-Identifier: MIT

public import Octets

/// A data object of BER-TLV or DER with its place in the file that it was read from.
///
/// What is thrown while one is taken apart says the octet at fault and the tags that lead there.
public struct DataObject: Sendable, Equatable {
    public let tag: UInt32
    /// A slice of the file's octets.
    public let value: ArraySlice<UInt8>
    /// The whole object as it stands in the file, tag and length included.
    public let octets: ArraySlice<UInt8>
    /// The tags of the objects around this one, the outermost first; one array for all that stand beside each other.
    private let parents: [UInt32]

    /// The first data object of `file`, whose tag must be `tag` when one is given. Octets after it are not looked at.
    ///
    /// - Throws: ``DataObjectError`` with the code `encoding` or `tag`.
    public init(_ file: [UInt8], tag: UInt32? = nil) throws(DataObjectError) {
        try self.init(inFile: file[...], tag: tag)
    }

    /// The data object that begins where `rest`, the tail of a file, does.
    public init(inFile rest: ArraySlice<UInt8>, tag: UInt32? = nil) throws(DataObjectError) {
        do { self.init(try TLV.first(in: rest), in: rest, parents: []) } catch {
            throw DataObjectError(.encoding, path: [], offset: rest.startIndex + error.offset, "\(error.code)")
        }
        if let tag { try require(tag) }
    }

    private init(_ object: TLV, in octets: ArraySlice<UInt8>, parents: [UInt32]) {
        tag = object.tag
        value = object.value
        self.octets = octets[(object.value.startIndex - object.headerLength)..<object.value.endIndex]
        self.parents = parents
    }

    /// The tags from the outermost object down to this one.
    public var path: [UInt32] { parents + [tag] }

    /// Where the tag begins, in octets from the start of the file: a slice keeps the indices of the array that it was cut from.
    public var offset: Int { octets.startIndex }

    /// The data objects inside.
    ///
    /// - Parameter filler: whether `00` and a tail of `FF` may stand between them, as in files of cards (never in DER).
    public func children(filler: Bool = false) throws(DataObjectError) -> [DataObject] {
        guard parents.count + 1 < Self.deepest else {
            throw fault(.encoding, "more than \(Self.deepest) objects inside each other")
        }
        do {
            let path = path
            return try TLV.parse(value, TLVRules(allowsFiller: filler)).map { DataObject($0, in: value, parents: path) }
        } catch {
            throw DataObjectError(.encoding, path: path, offset: value.startIndex + error.offset, "\(error.code)")
        }
    }

    /// The first data object that the octets of the value spell, for instance those of an OCTET STRING.
    public func inner(tag: UInt32? = nil) throws(DataObjectError) -> DataObject {
        let object: DataObject
        do { object = DataObject(try TLV.first(in: value), in: value, parents: path) } catch {
            throw DataObjectError(.encoding, path: path, offset: value.startIndex + error.offset, "\(error.code)")
        }
        if let tag { try object.require(tag) }
        return object
    }

    /// Throws unless the tag is `tag`.
    public func require(_ tag: UInt32) throws(DataObjectError) {
        guard self.tag == tag else { throw fault(.tag, "tag \(Self.hex(self.tag)) where \(Self.hex(tag)) was expected") }
    }

    /// An error about this object, at its first octet.
    public func fault(_ code: DataObjectError.Code, _ detail: String) -> DataObjectError {
        DataObjectError(code, path: path, offset: offset, detail)
    }

    static func hex(_ tag: UInt32) -> String {
        let text = String(tag, radix: 16, uppercase: true)
        return text.count % 2 == 0 ? text : "0" + text
    }

    private static let deepest = 32
}

extension Array<DataObject> {
    /// The first object with `tag`, or nil.
    public func first(_ tag: UInt32) -> DataObject? { first { $0.tag == tag } }

    /// The element at `index`, whose tag must be `tag` when one is given.
    ///
    /// - Parameter parent: what the error is about when the element is not there.
    public func element(_ index: Int, of parent: DataObject, tag: UInt32? = nil) throws(DataObjectError) -> DataObject {
        guard index < count else {
            throw parent.fault(.missing, "element \(index + 1) is not there, of \(count)")
        }
        if let tag { try self[index].require(tag) }
        return self[index]
    }
}

/// The values that DER (X.690 8) gives to primitive objects.
extension DataObject {
    /// The elements of a SEQUENCE, SET or another constructed object with this tag.
    public func elements(of tag: UInt32) throws(DataObjectError) -> [DataObject] {
        try require(tag)
        return try children()
    }

    /// The dotted text of an OBJECT IDENTIFIER.
    public func objectIdentifier() throws(DataObjectError) -> String {
        try require(0x06)
        guard let text = DER.objectIdentifierText(value) else { throw fault(.value, "octets that are no object identifier") }
        return text
    }

    /// A small INTEGER that is not negative.
    public func smallInteger() throws(DataObjectError) -> Int {
        let magnitude = try unsignedInteger()
        guard magnitude.count <= 7 else { throw fault(.value, "a number of \(magnitude.count) octets") }
        return magnitude.reduce(0) { $0 << 8 | Int($1) }
    }

    /// The octets of an INTEGER that is not negative, most significant first, without leading zeros: none for zero.
    public func unsignedInteger() throws(DataObjectError) -> [UInt8] {
        try require(0x02)
        guard let first = value.first else { throw fault(.value, "a number without octets") }
        guard first & 0x80 == 0 else { throw fault(.value, "a negative number") }
        return Array(value.drop { $0 == 0 })
    }

    /// The octets of a BIT STRING whose bits are whole octets.
    public func bitStringOctets() throws(DataObjectError) -> ArraySlice<UInt8> {
        try require(0x03)
        guard value.first == 0 else { throw fault(.value, "a bit string that is no string of octets") }
        return value.dropFirst()
    }
}

/// Why a data object is not what its file's standard says, and where. Equality is on the code.
public struct DataObjectError: CodedError {
    public enum Code: String, Sendable {
        /// The octets are no BER-TLV or DER.
        case encoding
        /// Another tag than the standard has here.
        case tag
        /// An object that must be there is not.
        case missing
        /// A value that the rules do not allow.
        case value
    }

    public let code: Code
    /// The tags from the outermost object down to the one at fault.
    public let path: [UInt32]
    /// The octet at fault, from the start of the file.
    public let offset: Int
    public let detail: String

    public init(_ code: Code, path: [UInt32], offset: Int, _ detail: String) {
        self.code = code
        self.path = path
        self.offset = offset
        self.detail = detail
    }

    /// `77/30/A0`.
    public var pathText: String { path.map(DataObject.hex).joined(separator: "/") }

    public var description: String { "\(detail), at octet \(offset)\(path.isEmpty ? "" : " in \(pathText)")" }
}
