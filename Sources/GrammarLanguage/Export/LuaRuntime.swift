// SPDX-License-Identifier: MIT

/// The part of the plug-in that is the same for every grammar.
enum LuaRuntime {
    /// Transforms that need no key and are written in Lua below.
    static let checksums: Set<String> = ["crcA", "crcB", "lrc"]

    /// Fields that are no grammar's: exchange, request, response, time, code, shown.
    static let ownFields = 6

    static let head = #"""
        -- One plug-in is enough: another may stand in Wireshark's folder.
        if rawget(_G, "tapdeck_is_loaded") then return end
        rawset(_G, "tapdeck_is_loaded", true)

        local byte, sub, fmt, floor, huge = string.byte, string.sub, string.format, math.floor, math.huge
        local tapdeck = Proto("tapdeck", "Tapdeck")
        local F, N, M, U, X, T, P, O, D, E, G, W, Y, Q = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}

        -- The buffer at work: a range of Wireshark's and the same octets as a string; positions count from 0.
        local R, B
        -- Wireshark's functions while somebody looks, else such as do less.
        local add, add_le, add_text, append, set_text, set_len, range
        -- The octets of the request at hand, also while its answer is read; the state of each session.
        local A, states
        -- By slot: value, start, octets, tree item; whether it was cut off; whether it has fields inside. J: joined parts.
        local V, S, C, I, Z, K = {}, {}, {}, {}, {}, {}
        local J
        local top, isSealed, depth

        local x_truncated = ProtoExpert.new("tapdeck.truncated", "fewer bytes than the grammar asks for", expert.group.MALFORMED, expert.severity.ERROR)
        local x_missing = ProtoExpert.new("tapdeck.missing", "a required field is absent", expert.group.MALFORMED, expert.severity.ERROR)
        local x_surplus = ProtoExpert.new("tapdeck.surplus", "bytes are left over", expert.group.PROTOCOL, expert.severity.WARN)
        local x_unknown = ProtoExpert.new("tapdeck.unknown", "not known to the grammar", expert.group.UNDECODED, expert.severity.NOTE)
        local x_unknown_warn = ProtoExpert.new("tapdeck.unknown.closed", "not a value that the grammar allows", expert.group.UNDECODED, expert.severity.WARN)
        local x_form = ProtoExpert.new("tapdeck.noncanonical", "legal, but not the shortest form", expert.group.PROTOCOL, expert.severity.NOTE)
        local x_sealed = ProtoExpert.new("tapdeck.sealed", "sealed: no key", expert.group.DECRYPTION, expert.severity.NOTE)
        local x_unpaired = ProtoExpert.new("tapdeck.unpaired", "a response without a request", expert.group.SEQUENCE, expert.severity.WARN)

        local function load(pos, size, little)
          local v = 0
          if little then
            for i = pos + size, pos + 1, -1 do v = v * 256 + byte(B, i) end
          else
            for i = pos + 1, pos + size do v = v * 256 + byte(B, i) end
          end
          return v
        end

        -- Wireshark has no range at the very end; an empty field there stands at the last octet.
        local function at(pos, n)
          if n == 0 and pos > 0 and pos >= #B then return range(R, pos - 1, 0) end
          if pos == 0 and n == #B then return R end
          return range(R, pos, n)
        end

        local function complain(item, expert_info, text)
          if text then item:add_proto_expert_info(expert_info, text) else item:add_proto_expert_info(expert_info) end
        end

        local function cut(item, wanted, present)
          item:add_proto_expert_info(present == 0 and x_missing or x_truncated, fmt("%d bytes wanted, %d there", wanted, present))
        end

        -- A number whose octets are not those of its type. form: 1 a number, 2 one of 64 bits, else octets.
        local function place(f, form, p, pos, n)
          if form == 1 then
            local v = n <= 4 and load(pos, n) or 0
            return add(p, f, at(pos, n), v), v
          elseif form == 2 then
            local v = n <= 8 and load(pos, n) or 0
            if n > 0 and n <= 8 then return add(p, f, range(R, pos, n)), v end
            return add(p, f, at(pos, n), UInt64(0)), v
          end
          return add(p, f, at(pos, n)), n <= 6 and load(pos, n) or 0
        end

        local function short(f, form, p, pos, e, wanted)
          local it, v = place(f, form, p, pos, e - pos)
          cut(it, wanted, e - pos)
          return it, v
        end

        local function whole(f, form, p, pos, e) return place(f, form, p, pos, e - pos) end

        local function missing(p, pos, e, wanted, u)
          cut(p, wanted, e - pos)
          if e > pos then add(p, u[1], range(R, pos, e - pos)) end
        end

        local function secret(p, f, pos, n, label)
          local it = add(p, f, at(pos, n))
          set_text(it, fmt("%s: %d bytes, secret", label, n))
          set_text(p, fmt("%d bytes, secret", n))
          return it
        end

        local function surplus(u, p, pos, e)
          add(p, u[1], range(R, pos, e - pos)):add_proto_expert_info(x_surplus)
          return e
        end

        local function masked(find, v, it, level)
          local text = find and find(v)
          if text then append(it, " (" .. text .. ")") else it:add_proto_expert_info(level) end
        end

        local function sealed(it)
          if isSealed then return end
          isSealed = true
          it:add_proto_expert_info(x_sealed)
        end

        local function octets(slot)
          local s = S[slot]
          return s and sub(B, s + 1, s + C[slot]) or nil
        end

        local function asked_octets(slot)
          local s = S[slot]
          return s and sub(A, s + 1, s + C[slot]) or nil
        end

        local function stretch(first, last)
          local a, b = S[first], S[last]
          if not a or not b or b + C[last] < a then return "" end
          return sub(B, a + 1, b + C[last])
        end

        local function cat(a, b) return a and b and a .. b end
        local function slice(s, a, b) return s and sub(s, a + 1, b) end

        local function spell(v, width)
          local s = ""
          for _ = 1, width do
            s = string.char(v % 256) .. s
            v = floor(v / 256)
          end
          return s
        end

        local function tonum(s)
          local v = 0
          for i = 1, #(s or "") do v = v * 256 + byte(s, i) end
          return v
        end

        local function differs(slot, expected)
          local found = octets(slot)
          return found and expected and found ~= expected
        end

        -- The last command of a chain with all its data: ISO/IEC 7816-4, 5.3.3. J may need an extended length.
        local function rejoined(part)
          local first = byte(B, 1)
          local lead = string.char(first - first % 32 + first % 16) .. sub(B, 2, 4)
          local n, le = #J, S[part] and sub(B, S[part] + C[part] + 1) or sub(B, 5)
          if n == 0 then return lead .. le end
          if n < 256 and #le < 2 then return lead .. string.char(n) .. J .. le end
          if #le == 1 then le = "\0" .. le end
          return lead .. string.char(0, floor(n / 256) % 256, n % 256) .. J .. le
        end

        local function show(v) return v and fmt("%d", v) or "?" end
        local function hex(s) return s and (s:gsub(".", function(c) return fmt("%02X", byte(c)) end)) or "?" end

        -- ISO/IEC 13239, as ISO/IEC 14443-3 annex B uses it.
        local function crc(s, v)
          for i = 1, #s do
            v = bit.bxor(v, byte(s, i))
            for _ = 1, 8 do
              if v % 2 == 1 then v = bit.bxor(floor(v / 2), 0x8408) else v = floor(v / 2) end
            end
          end
          return v
        end
        local function crcA(s)
          if not s then return nil end
          local v = crc(s, 0x6363)
          return string.char(v % 256, floor(v / 256))
        end
        local function crcB(s)
          if not s then return nil end
          local v = 65535 - crc(s, 0xFFFF)
          return string.char(v % 256, floor(v / 256))
        end
        local function lrc(s)
          if not s then return nil end
          local v = 0
          for i = 1, #s do v = bit.bxor(v, byte(s, i)) end
          return string.char(v)
        end

        -- The head of a data object: tag, octets of the head, length, whether it is in the shortest form; nil when cut off.
        local function head(dialect, pos, e)
          local first = byte(B, pos + 1)
          local at = pos + 1
          if dialect == "compact" then return floor(first / 16), 1, first % 16, true end
          if dialect == "simple" then
            if at >= e then return nil end
            local n = byte(B, at + 1)
            if n ~= 255 then return first, 2, n, true end
            if at + 2 >= e then return nil end
            n = load(at + 1, 2)
            return first, 4, n, n >= 255
          end
          local tag = first
          if first % 32 == 31 then
            local octet
            repeat
              if at >= e or tag > 0xFFFFFF then return nil end
              octet = byte(B, at + 1)
              tag = tag * 256 + octet
              at = at + 1
            until octet < 128
          end
          if at >= e then return nil end
          local n = byte(B, at + 1)
          at = at + 1
          if n < 128 then return tag, at - pos, n, true end
          local count = n - 128
          if count == 0 or count > 4 or at + count > e then return nil end
          n = load(at, count)
          local shortest = 0
          if n >= 128 then
            local left = n
            while left > 0 do
              shortest = shortest + 1
              left = floor(left / 256)
            end
          end
          return tag, at + count - pos, n, count == shortest
        end

        -- ISO/IEC 7816-4 5.2.2.1: 00 between objects means nothing; FF only when nothing else is left.
        local function filler(pos, e, p, u)
          local first = byte(B, pos + 1)
          if first ~= 0 and first ~= 255 then return nil end
          local stop = pos
          while stop < e and byte(B, stop + 1) == first do stop = stop + 1 end
          if first == 255 and stop < e then return nil end
          add(p, u[2], range(R, pos, stop - pos)):add_proto_expert_info(x_form)
          return stop
        end

        -- Every data object to e. An entry is {field, head's field, slot, reads, holds one value, names inside}.
        local function tlv(t, pos, e, p, u)
          if depth >= 16 then
            if pos < e then add(p, u[1], range(R, pos, e - pos)):add_proto_expert_info(x_unknown) end
            return e
          end
          depth = depth + 1
          while pos < e do
            local skipped = t.dialect == "ber" and filler(pos, e, p, u)
            if skipped then
              pos = skipped
            else
              local tag, hl, n, canonical = head(t.dialect, pos, e)
              if not tag then
                add(p, u[1], range(R, pos, e - pos)):add_proto_expert_info(x_truncated)
                pos = e
                break
              end
              local start = pos + hl
              local wanted = n
              if n > e - start then n = e - start end
              local x = t[tag]
              local it
              if not x then
                add(p, u[4], range(R, pos, hl)):set_hidden()
                it = add(p, u[3], at(start, n))
                append(it, fmt(" (tag %X)", tag))
                it:add_proto_expert_info(x_unknown)
              else
                local slot = x[3]
                if slot then
                  S[slot], C[slot], V[slot] = start, n, tag
                  I[slot] = p
                end
                if x[5] then
                  add(p, x[2], range(R, pos, hl)):set_hidden()
                  it = p
                  x[4](start, start + n, p)
                elseif x[4] then
                  add(p, x[2], range(R, pos, hl)):set_hidden()
                  it = add(p, x[1], at(start, n))
                  if slot then I[slot] = it end
                  x[4](start, start + n, it)
                else
                  add(p, x[2], range(R, pos, hl)):set_hidden()
                  it = x[6] and secret(p, x[1], start, n, x[6]) or add(p, x[1], at(start, n))
                  if slot then I[slot] = it end
                end
              end
              if not canonical then it:add_proto_expert_info(x_form) end
              if wanted > n then cut(it, wanted, n) end
              pos = start + n
            end
          end
          depth = depth - 1
          return pos
        end

        -- Reads what the field in slot holds as root.
        local function within(root, slot)
          local s = S[slot]
          if not s or K[slot] or C[slot] == 0 then return O[root]() end
          K[slot] = true
          local saved = depth
          depth = 0
          P[root](s, s + C[slot], I[slot])
          depth = saved
        end

        """#
}
