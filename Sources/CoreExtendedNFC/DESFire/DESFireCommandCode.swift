// SPDX-License-Identifier: MIT

/// Native commands of DESFire and NTAG 424 DNA; the instruction octet when wrapped in ISO/IEC 7816-4.
public enum DESFireCommandCode: UInt8, Sendable, Hashable, CaseIterable {
    case authenticateLegacy = 0x0A
    case authenticateISO = 0x1A
    case authenticateAES = 0xAA
    case authenticateEV2First = 0x71
    case authenticateEV2NonFirst = 0x77
    case additionalFrame = 0xAF

    case getVersion = 0x60
    case getCardUID = 0x51
    case freeMemory = 0x6E
    case formatPICC = 0xFC
    case setConfiguration = 0x5C
    case readSignature = 0x3C

    case getApplicationIDs = 0x6A
    case getDFNames = 0x6D
    case selectApplication = 0x5A
    case createApplication = 0xCA
    case deleteApplication = 0xDA

    case getKeySettings = 0x45
    case changeKeySettings = 0x54
    case getKeyVersion = 0x64
    case changeKey = 0xC4
    case changeKeyEV2 = 0xC6
    case initializeKeySet = 0x56
    case finalizeKeySet = 0x57
    case rollKeySet = 0x55

    case getFileIDs = 0x6F
    case getISOFileIDs = 0x61
    case getFileSettings = 0xF5
    case changeFileSettings = 0x5F
    case createStandardDataFile = 0xCD
    case createBackupDataFile = 0xCB
    case createValueFile = 0xCC
    case createLinearRecordFile = 0xC1
    case createCyclicRecordFile = 0xC0
    case createTransactionMACFile = 0xCE
    case deleteFile = 0xDF
    /// NTAG 424 DNA: the counter of Secure Dynamic Messaging.
    case getFileCounters = 0xF6

    case readData = 0xBD
    case writeData = 0x3D
    case readRecords = 0xBB
    case writeRecord = 0x3B
    case updateRecord = 0xDB
    case clearRecordFile = 0xEB
    case getValue = 0x6C
    case credit = 0x0C
    case debit = 0xDC
    case limitedCredit = 0x1C
    /// The codes of EV2 and later for one ISO/IEC 14443-4 chain instead of additional frames.
    case readDataISO = 0xAD
    case writeDataISO = 0x8D
    case readRecordsISO = 0xAB
    case writeRecordISO = 0x8B
    case updateRecordISO = 0xBA

    case commitTransaction = 0xC7
    case abortTransaction = 0xA7
    case commitReaderID = 0xC8
}
