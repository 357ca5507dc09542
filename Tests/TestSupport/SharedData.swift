// SPDX-License-Identifier: MIT

import Foundation

/// Captures, dumps and vectors by others, which are not part of this project.
public enum SharedData {
    /// The folder that `TAPDECK_TEST_DATA` names, when it is there.
    public static let folder: URL? = {
        guard let path = ProcessInfo.processInfo.environment["TAPDECK_TEST_DATA"], !path.isEmpty else { return nil }
        // What lists a folder does not follow a link to it.
        let url = URL(fileURLWithPath: path, isDirectory: true).resolvingSymlinksInPath()
        return FileManager.default.fileExists(atPath: url.path) ? url : nil
    }()

    public static var isPresent: Bool { folder != nil }

    public static let absence = "TAPDECK_TEST_DATA names no folder: captures by others are read from there"
}
