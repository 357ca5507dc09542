" SPDX-License-Identifier: MIT
" Grammars of Tapdeck. Copy syntax/ and ftdetect/ into ~/.vim.

if exists("b:current_syntax")
  finish
endif

syntax keyword tapdeckDeclaration check choose cite enum example exchange gather grammar layer
syntax keyword tapdeckDeclaration message session tlv transform use
syntax keyword tapdeckWord and any as blame but closed contested decode error event expect final
syntax keyword tapdeckWord given illegal in initial inverse keep let more near next nonce not note observe
syntax keyword tapdeckWord ok on open or otherwise outside part protected readonly refine request response resync secret
syntax keyword tapdeckWord see start state stop var warn when with yield
syntax keyword tapdeckType ascii bcd ber bits bytes compact repeat rest simple u16 u16le u24 u24le
syntax keyword tapdeckType u32 u32le u64 u8 uint
syntax keyword tapdeckFunction before count has hex joined kept number pad peek raw remaining text unpad

syntax match tapdeckNumber "\<\%(0x[0-9A-Fa-f?]\+\|[0-9][0-9A-Fa-f]*\)\>"
syntax match tapdeckOperator "->\|\.\.<\|\.\.\.\|[-+*&|^<>=!]"
syntax match tapdeckPlaceholder "{[^}\"]*}" contained
syntax region tapdeckText start=+"+ end=+"\|$+ oneline contains=tapdeckPlaceholder
syntax match tapdeckComment "//.*$" contains=tapdeckTodo
syntax keyword tapdeckTodo TODO FIXME contained
" The bytes of an example.
syntax match tapdeckBytes "^\s*[<>][ 0-9A-Fa-f]*" contains=tapdeckDirection
syntax match tapdeckDirection "[<>]" contained

highlight default link tapdeckDeclaration Keyword
highlight default link tapdeckWord Statement
highlight default link tapdeckType Type
highlight default link tapdeckFunction Function
highlight default link tapdeckNumber Number
highlight default link tapdeckOperator Operator
highlight default link tapdeckPlaceholder Special
highlight default link tapdeckText String
highlight default link tapdeckComment Comment
highlight default link tapdeckTodo Todo
highlight default link tapdeckBytes Number
highlight default link tapdeckDirection Operator

setlocal commentstring=//\ %s

let b:current_syntax = "tapdeck"
