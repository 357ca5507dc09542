public import TagTransport
public protocol Flow: Sendable {
    associatedtype Arguments: Codable & Sendable
    associatedtype Outcome: Codable & Sendable
    static var name: String { get }
    static var function: String { get }
    static func secretArguments(of arguments: Arguments) -> Set<String>
    static func run(_ arguments: Arguments, over transport: any NFCTagTransport, progress: @escaping @Sendable (String) -> Void) async throws -> Outcome
}
public struct AnyFlow: Sendable {
    public let name: String
    public let function: String
    public func secretArguments(ofJSON: String) -> Set<String> { [] }
    public func run(argumentsJSON: String, over: any NFCTagTransport, progress: @escaping @Sendable (String) -> Void) async throws -> String { "" }
}
public enum FlowTable { public static let all: [AnyFlow] = []; public static func named(_ n: String) -> AnyFlow? { nil } }
public struct FlowFailure: Equatable, Codable, Sendable { public var domain: String; public var `case`: String; public var code: String?; public var detail: String
 public static func describe(_ e: any Error) -> FlowFailure { FlowFailure(domain: "", case: "", code: nil, detail: "") } }
