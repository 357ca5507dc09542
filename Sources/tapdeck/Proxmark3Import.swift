enum Proxmark3Import { static func run(_ p: String, to: String, _ a: Arguments, _ t: Terminal) throws -> ExitStatus { .fine } }
