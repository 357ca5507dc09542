/* The binary interface of libpcsclite.so.1 on Linux, as far as it is called here.
   The library is opened at run time, so its headers are not needed to build and its absence can be reported. */
#ifndef TAPDECK_PCSCLITE_ABI_H
#define TAPDECK_PCSCLITE_ABI_H

typedef long TD_LONG;
typedef unsigned long TD_DWORD;

#define TD_MAX_ATR_SIZE 33

typedef struct {
    const char *szReader;
    void *pvUserData;
    TD_DWORD dwCurrentState;
    TD_DWORD dwEventState;
    TD_DWORD cbAtr;
    unsigned char rgbAtr[TD_MAX_ATR_SIZE];
} TD_READERSTATE;

typedef struct {
    unsigned long dwProtocol;
    unsigned long cbPciLength;
} TD_IO_REQUEST;

#endif
