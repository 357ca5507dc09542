// SPDX-License-Identifier: MIT

/// What the parsers make of each shared file, pinned. The counts of self-signed certificates are those of `openssl verify`.
enum SharedDocumentResults {
    static let lines: [String] = [
        "2010-12_CSCA.cer: 1 certificates, 1 self-signed, CN=CSCA, OU=Direktorat Sistem Informasi Keimigrasian, "
            + "O=Direktorat Jenderal Imigrasi, C=ID, RSA 4096",
        "2016-01_CSCA.cer: 1 certificates, 1 self-signed, CN=CSCA, OU=DITJEN IMIGRASI, O=DIT SISTIK, C=ID, RSA 4096",
        "2016-01_CSCA_LINK.cer: 1 certificates, 0 self-signed, CN=CSCA, OU=DITJEN IMIGRASI, O=DIT SISTIK, C=ID, "
            + "RSA 4096",
        "CVCA_Cert_01.cvcert: DEISCVCA00001 by DEISCVCA00001, authority, 2016-11-22...2017-11-22, plain ECDSA, "
            + "SHA-256, self-signed, 0 extensions",
        "CVCA_Cert_01.cvcert: DEATCVCA00001 by DEATCVCA00001, authority, 2016-11-22...2017-11-22, plain ECDSA, "
            + "SHA-256, self-signed, 0 extensions",
        "DECVCAEPASS00102: DECVCAEPASS00102 by DECVCAEPASS00102, authority, 2010-10-18...2013-10-18, plain ECDSA, "
            + "SHA-256, self-signed, 0 extensions",
        "DECVCAeID00102: DECVCAeID00102 by DECVCAeID00102, authority, 2010-10-18...2013-10-18, plain ECDSA, "
            + "SHA-256, self-signed, 0 extensions",
        "DETESTeID00005.cvcert: DETESTeID00005 by DETESTeID00005, authority, 2015-05-04...2018-05-04, plain "
            + "ECDSA, SHA-256, self-signed, 0 extensions",
        "DE_ML_2026-05-28-08-28-45.ml: 588 certificates, 0 not understood, 375 self-signed, valid, C=DE, O=bund, "
            + "OU=bsi, serialNumber=0039, CN=CSCA Master List Signer",
        "DE_ROOT_CA_CSCA07.cer: 1 certificates, 1 self-signed, C=DE, O=bund, OU=bsi, CN=csca-germany, EC 512",
        "Datagroup1.bin: P<D<<MUSTERMANN<<ERIKA<<<<<<<<<<<<<<<<<<<<<<C11T002JM4D<<9608122F1310317<<<<<<<<<<<<<<<6",
        "Datagroup15.bin: RSA 1024",
        "Datagroup2.bin: 1 templates: jpeg2000 14999, 337x449",
        "EF_COM.bin: LDS 0107, DG1 DG2 DG3 DG14",
        "EF_DG11.bin: address=TEST<TEST; custodyInfo=TEST; dateOfBirth=19700101; fullName=Doe John; "
            + "otherNames=William; otherTravelDocNumbers=123<123; personalNumber=123; personalSummary=TEST; "
            + "placeOfBirth=TEST<TEST; profession=TEST; telephone=123; title=TEST",
        "EF_DG7.bin: jpeg2000 289",
        "ICAO_39794_5_AP_MandFields.dat: 1 templates: jpeg2000 15000",
        "ICAO_39794_5_AP_MandFields_InvalidImage.dat: 1 templates: ",
        "ISO19794_Test1_Data.bin: 1 templates: jpeg 5099, 148x70",
        "NL_ML_2025-07-29.ml: 394 certificates, 0 not understood, 394 self-signed, valid, serialNumber=8, "
            + "CN=Masterlist Signer NL, OU=Kingdom of the Netherlands, O=Kingdom of the Netherlands, C=NL",
        "at_cert_1.cvcert: DETESTAT00001 by DEDVAT00001, terminal, 2016-11-22...2016-12-22, plain ECDSA, SHA-256, "
            + "1 extensions",
        "at_cert_19a.cvcert: DETESTATDE019 by DETESTDVDE019, terminal, 2010-03-24...2010-04-24, RSA v1.5, SHA-1, "
            + "0 extensions",
        "certCVCA_orig.cvcert: NLCVCAA00001 by NLCVCAA00001, authority, 2008-05-19...2011-05-19, plain ECDSA, "
            + "SHA-224, self-signed, 0 extensions",
        "certDVD_orig.cvcert: NLDVAAANL001 by NLCVCAA00001, officialDocumentVerifier, 2009-05-18...2009-11-18, "
            + "plain ECDSA, SHA-224, 0 extensions",
        "certIS_orig.cvcert: NLIS7202000NL001 by NLDVAAANL001, terminal, 2009-05-18...2009-11-18, plain ECDSA, "
            + "SHA-224, 0 extensions",
        "cvat-DE0000024001HW.hex: DE0000024001HW by DEDVeIDDTR101415, terminal, 2014-11-07...2014-11-08, plain "
            + "ECDSA, SHA-256, 2 extensions",
        "cvat-DEDEMOPAA00079.hex: DEDEMOPAA00079 by DEDVeIDDPST00039, terminal, 2014-10-29...2014-11-29, plain "
            + "ECDSA, SHA-256, 2 extensions",
        "cvat-template-HolderXXXXXXXX_AuthorityXXXXXXX.hex: HolderXXXXXXXX by AuthorityXXXXXXX, terminal, "
            + "2014-03-13...2014-04-11, plain ECDSA, SHA-256, 2 extensions",
        "cvca-DECVCAeID00102.hex: DECVCAeID00102 by DECVCAeID00102, authority, 2010-10-18...2013-10-18, plain "
            + "ECDSA, SHA-256, self-signed, 0 extensions",
        "cvca-DECVCAeID00102_DECVCAeID00103.hex: DECVCAeID00103 by DECVCAeID00102, authority, "
            + "2012-12-03...2015-12-03, plain ECDSA, SHA-256, 0 extensions",
        "cvca-DECVCAeID00103.hex: DECVCAeID00103 by DECVCAeID00103, authority, 2012-12-03...2015-12-03, plain "
            + "ECDSA, SHA-256, self-signed, 0 extensions",
        "cvca-DETESTeID00001.hex: DETESTeID00001 by DETESTeID00001, authority, 2010-08-13...2013-08-13, plain "
            + "ECDSA, SHA-256, self-signed, 0 extensions",
        "cvca-DETESTeID00002.hex: DETESTeID00002 by DETESTeID00002, authority, 2010-09-21...2013-09-21, plain "
            + "ECDSA, SHA-256, self-signed, 0 extensions",
        "cvca-DETESTeID00002_DETESTeID00001.hex: DETESTeID00002 by DETESTeID00001, authority, "
            + "2010-09-21...2013-09-21, plain ECDSA, SHA-256, 0 extensions",
        "cvca-template-HolderXXXXXXXX_AuthorityXXXXX.hex: HolderXXXXXXXX by AuthorityXXXXX, authority, "
            + "2010-09-21...2013-09-21, plain ECDSA, SHA-256, 0 extensions",
        "cvdv-DEDVeIDDPST00035.hex: DEDVeIDDPST00035 by DETESTeID00004, foreignDocumentVerifier, "
            + "2014-02-11...2014-05-12, plain ECDSA, SHA-256, 0 extensions",
        "cvdv-DEDVeIDDPST00039.hex: DEDVeIDDPST00039 by DETESTeID00004, foreignDocumentVerifier, "
            + "2014-10-21...2015-01-19, plain ECDSA, SHA-256, 0 extensions",
        "cvdv-DEDVeIDDTR101415.hex: DEDVeIDDTR101415 by DECVCAeID00103, foreignDocumentVerifier, "
            + "2014-10-23...2015-01-21, plain ECDSA, SHA-256, 0 extensions",
        "cvdv-template-HolderXXXXXXXXXX_AuthorityXXXXX.hex: HolderXXXXXXXXXX by AuthorityXXXXX, "
            + "foreignDocumentVerifier, 2014-02-11...2014-05-12, plain ECDSA, SHA-256, 0 extensions",
        "dg2_silver_mandatory_fields.bin: 1 templates: jpeg2000 15000",
        "dv_at_cert_1.cvcert: DEDVAT00001 by DEATCVCA00001, foreignDocumentVerifier, 2016-11-22...2016-12-22, "
            + "plain ECDSA, SHA-256, 0 extensions",
        "dv_cert_19.cvcert: DETESTDVDE019 by DETESTCVCA00003, officialDocumentVerifier, 2010-03-24...2010-04-24, "
            + "RSA v1.5, SHA-1, 0 extensions",
        "dv_is_cert_1.cvcert: DEDVIS00001 by DEISCVCA00001, officialDocumentVerifier, 2016-11-22...2016-12-22, "
            + "plain ECDSA, SHA-256, 0 extensions",
        "efCardAccess.hex: Terminal Authentication; Chip Authentication ECDH, AES-128 (72); PACE ECDH-GM, AES-128 "
            + "(13); Chip Authentication ECDH domain parameters, standard 13; card info; 0.4.0.127.0.7.2.2.8",
        "efCardSecurity.hex: valid, ECDSA, SHA-256, C=DE, O=Bundesdruckerei GmbH, serialNumber=0021, CN=TEST "
            + "Document Signer Identity Documents: Terminal Authentication; Chip Authentication ECDH, AES-128 (65); "
            + "PACE ECDH-GM, AES-128 (13); 0.4.0.127.0.7.2.2.5.2.3; 0.4.0.127.0.7.2.2.5.2.3; 0.4.0.127.0.7.2.2.5.2; "
            + "Chip Authentication ECDH domain parameters, standard 13; card info; Chip Authentication public key, "
            + "ECDH, standard 13",
        "efcardsecurity.dump: FAILS EF.CardSecurity: tag 06 where 30 was expected, at octet 137 (31/30/30/06)",
        "is_cert_1.cvcert: DETESTIS00001 by DEDVIS00001, terminal, 2016-11-22...2016-12-22, plain ECDSA, SHA-256, "
            + "0 extensions",
        "johnny-silverhand-ecdsa-p256-sha256.sod: SHA-256, groups 1 2",
        "johnny-silverhand-ecdsa-p384-sha384.sod: SHA-384, groups 1 2",
        "johnny-silverhand-rsa-2048-sha256.sod: SHA-256, groups 1 2",
        "johnny-silverhand-rsa-4096-sha512.sod: SHA-512, groups 1 2",
        "masterList.pem: 720 certificates, 478 self-signed, C=LT, O=ADIC under MOI, CN=CSCA, serialNumber=001, EC 256",
        "sample-39794-4-ed-1-v1.der: 1 templates: png 689",
        "simulatorFiles.json 011c: PACE ECDH-GM, AES-128 (13); Terminal Authentication; Chip Authentication ECDH, "
            + "AES-128 (41); Chip Authentication ECDH domain parameters, standard 13; 0.4.0.127.0.7.2.2.8; card info",
        "simulatorFiles.json 011d: valid, ECDSA, SHA-512, C=DE, O=BSI, serialNumber=0099, CN=TEST Document Signer "
            + "Identity Documents: PACE ECDH-GM, AES-128 (13); Terminal Authentication; 0.4.0.127.0.7.2.2.5.2.3; "
            + "0.4.0.127.0.7.2.2.5.2; 0.4.0.127.0.7.2.2.5.2.3; Chip Authentication ECDH, AES-128 (41); Chip "
            + "Authentication ECDH domain parameters, standard 13; Chip Authentication public key, ECDH, standard 13; "
            + "0.4.0.127.0.7.2.2.8; card info; 0.4.0.127.0.7.2.2.7",
        "simulatorFiles.json 2f00: E828BD080FA000000167455349474E CIA zu DF.eSign; A0000002471001; "
            + "E80704007F00070302; A000000167455349474E",
        "spec_sample_encoded_dg14.bin: Chip Authentication public key, DH, DH 1024; Chip Authentication DH, 3DES; "
            + "Terminal Authentication",
        "zkr-csca-ecdsa-p256-sha256.pem: 1 certificates, 1 self-signed, CN=Zero Knowledge Republic CSCA, C=ZK, EC 256",
        "zkr-csca-rsa-2048-sha256.pem: 1 certificates, 1 self-signed, CN=Zero Knowledge Republic CSCA, C=ZK, RSA 2048",
        "zkr-dsc-ecdsa-p256-sha256.pem: 1 certificates, 0 self-signed, CN=Zero Knowledge Republic DSC, C=ZK, EC 256",
        "zkr-dsc-ecdsa-p384-sha384.pem: 1 certificates, 0 self-signed, CN=Zero Knowledge Republic DSC, C=ZK, EC 384",
        "zkr-dsc-rsa-2048-sha256.pem: 1 certificates, 0 self-signed, CN=Zero Knowledge Republic DSC, C=ZK, RSA 2048",
        "zkr-dsc-rsa-4096-sha512.pem: 1 certificates, 0 self-signed, CN=Zero Knowledge Republic DSC, C=ZK, RSA 4096",
    ]
}
