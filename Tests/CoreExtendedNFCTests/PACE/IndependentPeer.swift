// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TestSupport

/// PACE with generic mapping by libeac (OpenPACE), in a process of its own: a program in C that is compiled when the tests run.
///
/// It takes a step a line and answers with a line: the step's number, then the value received, in hexadecimal.
final class IndependentPeer: @unchecked Sendable {
    enum Role: String {
        case chip, terminal
    }

    struct Failure: Error {
        let text: String
    }

    /// Why there is no peer on this machine; nil when there is one.
    static let absence: String? = {
        let folder: TemporaryFolder
        do { folder = try TemporaryFolder() } catch { return "no temporary folder" }
        do {
            try folder.write(source, "peer.c")
            let compiled = try ProcessRunner.runBlocking(
                "cc", ["-w", "-o", folder("peer"), folder("peer.c"), "-leac", "-lcrypto"])
            guard compiled.end == .status(0) else { return "libeac-dev or a C compiler is not installed" }
            kept = folder
            return nil
        } catch {
            return "no C compiler"
        }
    }()

    nonisolated(unsafe) private static var kept: TemporaryFolder?

    // Unchecked: one test uses it, one line after another.
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var buffer: [UInt8] = []

    /// - Parameter bits: of the AES key.
    init(_ role: Role, bits: Int, parameters: Int, can: String) throws {
        guard let folder = Self.kept else { throw Failure(text: "there is no peer") }
        process.executableURL = URL(fileURLWithPath: folder("peer"))
        process.arguments = [role.rawValue, "\(bits)", "\(parameters)", can]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
    }

    deinit {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }

    /// The words of the answer.
    func step(_ number: Int, _ value: [UInt8] = []) throws -> [[UInt8]] {
        try input.fileHandleForWriting.write(contentsOf: Data("\(number) \(Hex.encode(value))\n".utf8))
        while !buffer.contains(0x0A) {
            let piece = output.fileHandleForReading.availableData
            guard !piece.isEmpty else { throw Failure(text: "the peer ended in step \(number)") }
            buffer += piece
        }
        let line = buffer.prefix { $0 != 0x0A }
        buffer.removeFirst(line.count + 1)
        let words = String(decoding: line, as: UTF8.self).split(separator: " ")
        guard words.first != "FAIL" else { throw Failure(text: "the peer refuses step \(number)") }
        return try words.map { try Hex.decode(String($0)) }
    }

    private static let source = #"""
        #include <eac/eac.h>
        #include <eac/pace.h>
        #include <eac/objects.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>

        static void put(const BUF_MEM *value) {
            for (size_t i = 0; i < value->length; i++) printf("%02X", (unsigned char)value->data[i]);
        }

        static void fail(void) { printf("FAIL\n"); fflush(stdout); exit(1); }
        static void end(void) { printf("\n"); fflush(stdout); }

        static BUF_MEM *parse(const char *hex) {
            BUF_MEM *value = BUF_MEM_new();
            size_t count = strlen(hex) / 2;
            BUF_MEM_grow(value, count);
            for (size_t i = 0; i < count; i++) {
                unsigned octet;
                sscanf(hex + 2 * i, "%2x", &octet);
                value->data[i] = (char)octet;
            }
            return value;
        }

        int main(int argc, char **argv) {
            static char line[4096], hex[4096];
            int number;
            if (argc != 5) return 2;
            EAC_init();
            int isChip = !strcmp(argv[1], "chip");
            int bits = atoi(argv[2]);
            int protocol = bits == 128 ? NID_id_PACE_ECDH_GM_AES_CBC_CMAC_128
                : bits == 192 ? NID_id_PACE_ECDH_GM_AES_CBC_CMAC_192 : NID_id_PACE_ECDH_GM_AES_CBC_CMAC_256;
            EAC_CTX *ctx = EAC_CTX_new();
            PACE_SEC *secret = PACE_SEC_new(argv[4], strlen(argv[4]), PACE_CAN);
            if (!ctx || !secret || !EAC_CTX_init_pace(ctx, protocol, atoi(argv[3]))) fail();
            BUF_MEM *ephemeral = NULL, *other = NULL, *out = NULL;
            while (fgets(line, sizeof line, stdin)) {
                hex[0] = 0;
                if (sscanf(line, "%d %4095s", &number, hex) < 1) fail();
                BUF_MEM *in = parse(hex);
                switch (number) {
                case 1:
                    if (isChip) {
                        if (!(out = PACE_STEP1_enc_nonce(ctx, secret))) fail();
                    } else {
                        if (!PACE_STEP2_dec_nonce(ctx, secret, in)) fail();
                        if (!(out = PACE_STEP3A_generate_mapping_data(ctx))) fail();
                    }
                    put(out); end();
                    break;
                case 2:
                    if (isChip) {
                        if (!(out = PACE_STEP3A_generate_mapping_data(ctx))) fail();
                        if (!PACE_STEP3A_map_generator(ctx, in)) fail();
                        put(out); end();
                    } else {
                        if (!PACE_STEP3A_map_generator(ctx, in)) fail();
                        if (!(ephemeral = PACE_STEP3B_generate_ephemeral_key(ctx))) fail();
                        put(ephemeral); end();
                    }
                    break;
                case 3:
                    other = in;
                    if (isChip && !(ephemeral = PACE_STEP3B_generate_ephemeral_key(ctx))) fail();
                    if (!PACE_STEP3B_compute_shared_secret(ctx, in) || !PACE_STEP3C_derive_keys(ctx)) fail();
                    if (isChip) { put(ephemeral); end(); break; }
                    if (!(out = PACE_STEP3D_compute_authentication_token(ctx, other))) fail();
                    put(out); end();
                    break;
                case 4:
                    if (PACE_STEP3D_verify_authentication_token(ctx, in) != 1) fail();
                    if (!(out = PACE_STEP3D_compute_authentication_token(ctx, other))) fail();
                    if (!EAC_CTX_set_encryption_ctx(ctx, EAC_ID_PACE)) fail();
                    put(out); printf(" "); put(ctx->key_ctx->k_enc); printf(" "); put(ctx->key_ctx->k_mac); end();
                    break;
                default: fail();
                }
            }
            return 0;
        }
        """#
}
