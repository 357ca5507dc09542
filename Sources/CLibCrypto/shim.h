#ifndef TAPDECK_LIBCRYPTO_SHIM_H
#define TAPDECK_LIBCRYPTO_SHIM_H

/* CardCrypto/DES.swift, Digest.swift and KeyAgreement/ModularGroup.swift say why they use functions that 3.0 calls deprecated. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include <openssl/aes.h>
#include <openssl/bn.h>
#include <openssl/cms.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/des.h>
#include <openssl/dh.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* Macros that the importer does not see. */
static inline void td_openssl_free(void *p) { OPENSSL_free(p); }
static inline int td_bn_num_bytes(const BIGNUM *n) { return BN_num_bytes(n); }

#endif
