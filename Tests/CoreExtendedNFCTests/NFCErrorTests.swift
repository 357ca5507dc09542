// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Testing

@Suite struct NFCErrorTests {
    @Test func onlyWishesToStopAreCancellations() {
        for error in [CancellationError(), NFCError.userCanceled, NFCError.sessionInvalidatedByCaller] as [any Error] {
            #expect(error.isNFCCancellation)
        }
        for error in [
            NFCError.scanInProgress, NFCError.sessionTimeout, NFCError.sessionInvalidated(""), TransportError(.cancelled),
        ] as [any Error] {
            #expect(!error.isNFCCancellation)
        }
    }

    @Test func equalityIsOnCaseAndFactsAndNotOnTexts() {
        #expect(NFCError.bacFailed("a") == .bacFailed("b"))
        #expect(NFCError.bacFailed("a") != .secureMessagingError("a"))
        #expect(NFCError.unexpectedStatusWord(0x6A, 0x82) != .unexpectedStatusWord(0x69, 0x82))
        #expect(NFCError.applicationNotFound(aid: Data([1])) != .applicationNotFound(aid: Data([2])))
        #expect(NFCError.writeFailed(page: 4) == .writeFailed(page: 4))
    }

    @Test(arguments: TransportError.Case.allCases)
    func eachTransportErrorHasItsFaceAtTheBorder(transportCase: TransportError.Case) {
        let error = NFCError.facing(TransportError(transportCase, detail: "x"))
        let expected: NFCError? =
            switch transportCase {
            case .tagConnectionLost: .tagConnectionLost
            case .timeout: .sessionTimeout
            case .tagReset, .sharingViolation, .readerFailure: .sessionInvalidated("")
            case .readerUnavailable, .serviceUnavailable: .nfcNotAvailable
            case .cancelled: .sessionInvalidatedByCaller
            case .unsupportedOperation: .unsupportedOperation("")
            case .malformedResponse: .invalidResponse(Data())
            case .readersForbidden: nil
            }
        #expect(error as? NFCError == expected)
        if expected == nil { #expect(error as? TransportError == TransportError(.readersForbidden)) }
    }

    @Test func whatSaysNothingOfACardComesThrough() {
        #expect(NFCError.facing(CancellationError()) is CancellationError)
        #expect(NFCError.facing(EnvironmentError(code: .drawNotRecorded, detail: "")) is EnvironmentError)
        #expect(NFCError.facing(NFCError.tagLocked) as? NFCError == .tagLocked)
    }
}

@Suite struct IdentityTests {
    @Test func cardInfoSurvivesJSONAndKindsHaveTheirFamily() throws {
        let info = CardInfo(
            type: .unknown(atqa: Data([0x03, 0x44]), sak: 0x20), uid: Data([4, 1]),
            ats: ATSInfo(bytes: [0x78, 0x80, 0x70, 0x02, 0xC1, 5]))
        let copy = try JSONDecoder().decode(CardInfo.self, from: JSONEncoder().encode(info))
        #expect(copy == info)
        #expect(info.type.description == "Unknown (ATQA: 0344, SAK: 20)")
        #expect(CardType.ntag424DNA.family == .ntag)
        #expect(CardType.myNumberCard.family == .iso14443B)
        #expect(!CardType.mifareMini.isOperableOnIOS && CardType.ePassport.isOperableOnIOS)
    }

    /// ISO/IEC 14443-4:2018 5.2.
    @Test func anATSIsReadFromT0On() {
        let ats = ATSInfo(bytes: octets("78807002C1052F2F01BCD6"))
        #expect(ats.frameSize == 256)
        #expect(ats.frameWaitingInteger == 7)
        #expect(ats.supportsCID && !ats.supportsNAD)
        #expect(ats.historicalBytes == data("C1052F2F01BCD6"))
        #expect(ATSInfo(bytes: [0x0C]).frameSize == 4096)
        #expect(ATSInfo(bytes: [0x0F]).frameSize == 4096)
        let absent = ATSInfo(bytes: [])
        #expect(absent.frameSize == 32)
        #expect(absent.frameWaitingInteger == 4)
        #expect(absent.supportsCID)
        #expect(ATSInfo(bytes: [0x72]).tb == nil)
    }

    @Test func applicationsAreFoundByTheirIdentifier() {
        #expect(ISO7816Application.match(aid: "<a0 00 00 02 47 10 01>") == .eMRTDLDS)
        #expect(ISO7816Application.match(aid: "") == nil)
        #expect(ISO7816Application.match(aid: "D3921000310001010402")?.hintedType == .myNumberCard)
        #expect(
            CardInfo(type: .smartMX, uid: Data(), initialSelectedAID: "D2760000850101").knownISO7816Application
                == .ndefTagApplication)
    }
}
