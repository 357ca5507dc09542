// SPDX-License-Identifier: MIT

import TraceFile

/// `import apdu4j`.
enum APDU4JImport {
    static func run(_ input: String, to output: String, _ arguments: Arguments, _ terminal: Terminal) throws -> ExitStatus {
        try APDUImport.run(input, to: output, arguments, terminal) { (path) throws(TraceFileError) in
            try APDU4JImporter.importFile(path)
        }
    }
}
