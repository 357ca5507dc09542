" SPDX-License-Identifier: MIT
autocmd BufNewFile,BufRead *.grammar setfiletype tapdeck
