// SPDX-License-Identifier: MIT

extension LuaRuntime {
    /// Pairing, exchanges, gathers and the entry point, after the tables of the grammars.
    static let tail = #"""
        local f_apdu, f_atr, f_inf = Field.new("iso7816"), Field.new("iso7816.atr"), Field.new("iso14443.inf")
        local f_frame, f_block = Field.new("iso14443"), Field.new("iso14443.block_type")
        local f_interface, f_identifier, f_time = Field.new("frame.interface_id"), Field.new("frame.packet_id"), Field.new("frame.time_epoch")

        local p_exchange = ProtoField.string("tapdeck.exchange", "exchange")
        local p_request = ProtoField.framenum("tapdeck.request", "request in", base.NONE, frametype.REQUEST)
        local p_response = ProtoField.framenum("tapdeck.response", "response in", base.NONE, frametype.RESPONSE)
        local p_time = ProtoField.relative_time("tapdeck.time", "time since the request")
        local list = {p_exchange, p_request, p_response, p_time}
        for _, f in ipairs(F) do list[#list + 1] = f end
        tapdeck.fields = list
        local experts = {x_truncated, x_missing, x_surplus, x_unknown, x_unknown_warn, x_form, x_sealed, x_unpaired}
        for _, x in ipairs(X) do experts[#experts + 1] = x end
        tapdeck.experts = experts

        -- What the first pass learnt, by frame number: the exchange's record, and what its parts were joined to.
        local records, wholes, links
        local PART = {}

        function tapdeck.init()
          records, wholes, links = {}, {}, {}
        end

        local function start(range)
          R, B = range, range:raw()
          V, S, C, I, Z, K = {}, {}, {}, {}, {}, {}
          depth, isSealed = 0, false
        end

        local function link(pinfo)
          local interface = f_interface()
          local key = interface and interface.value or 0
          local l = links[key]
          if not l then
            l = {open = {}, gathers = {}}
            links[key] = l
          end
          return l
        end

        local function identifier()
          local id = f_identifier()
          return id and id.value:tonumber() or nil
        end

        -- The record of the exchange that this frame belongs to.
        local function pair(pinfo, l, isRequest)
          local id = identifier()
          local at = f_time().value
          if isRequest then
            local record = {request = pinfo.number, at = at, id = id}
            if l.last and l.last.id then l.open[l.last.id] = l.last end
            l.last = record
            return record
          end
          local record = l.last
          if record and id and record.id and record.id ~= id then record = l.open[id] end
          if not record then return nil end
          if record == l.last then l.last = nil end
          if record.id then l.open[record.id] = nil end
          record.response = pinfo.number
          record.time = at - record.at
          record.at = nil
          return record
        end

        local function keep(record)
          local kept
          for _, slot in ipairs(carried) do
            if V[slot] or S[slot] then
              kept = kept or {}
              kept[#kept + 1] = {slot, V[slot], S[slot], C[slot]}
            end
          end
          record.kept = kept
        end

        local function recall(record)
          for _, k in ipairs(record and record.kept or {}) do V[k[1]], S[k[1]], C[k[1]] = k[2], k[3], k[4] end
        end

        -- A message that other messages carried, or that was put together, as bytes of its own.
        local function show_whole(tree, octets, text)
          local range = ByteArray.new(octets, true):tvb(text):range()
          start(range)
          top = tree:add(tapdeck, range)
          top:append_text(", " .. text)
        end

        local function truth(f) return f == nil or (f() or 0) ~= 0 end

        -- Blocks that carry messages. Gives the carried message's root once it is whole.
        local function join(tree, pinfo, l, root, isRequest)
          for i, g in ipairs(W) do
            if g.decode and g.request == isRequest and g.root == root and truth(g.condition) then
              local number = pinfo.number
              if l then
                local s = l.gathers[i] or {}
                l.gathers[i] = s
                if #s > 0 and not truth(g.next) then s = {} l.gathers[i] = s end
                s[#s + 1] = octets(g.part) or ""
                if truth(g.more) then
                  wholes[number] = PART
                else
                  if #s > 1 then wholes[number] = table.concat(s) end
                  l.gathers[i] = nil
                end
              end
              local whole = wholes[number]
              if whole == PART then return nil end
              if whole then
                show_whole(tree, whole, "joined from blocks")
                P[g.decode](0, #B, top)
              elseif S[g.part] then
                within(g.decode, g.part)
              end
              return g.decode
            end
          end
        end

        -- Answers, or commands, that travel in parts.
        local function gather(tree, pinfo, l, root, isRequest, record)
          for i, g in ipairs(W) do
            if not g.decode and g.request == isRequest and g.root == root then
              local number = pinfo.number
              if l then
                local s = l.gathers[i]
                local more = truth(g.more)
                if s and not truth(g.next) then s = nil l.gathers[i] = nil end
                if s or more then
                  s = s or {record = record}
                  l.gathers[i] = s
                  s[#s + 1] = octets(g.part) or ""
                  if more then
                    wholes[number] = PART
                  else
                    l.gathers[i] = nil
                    J = table.concat(s)
                    local whole = g.yield and g.yield()
                    wholes[number] = whole and {whole, s.record} or PART
                  end
                end
              end
              local whole = wholes[number]
              if whole == PART then return nil, true end
              if type(whole) == "table" then
                show_whole(tree, whole[1], "joined from parts")
                if not isRequest then recall(whole[2]) end
                P[g.to](0, #B, top)
                return g.to, false, whole[2]
              end
            end
          end
          return root, false, record
        end

        local function title(item, x, response)
          if not x then return end
          item:append_text(": " .. Q[x] .. (response and ", answer" or ""))
          item:add(p_exchange, Q[x]):set_generated()
        end

        local function request(tree, pinfo, range, root)
          local first = not pinfo.visited
          local l = first and link(pinfo) or nil
          start(range)
          top = tree:add(tapdeck, range)
          local outer = top
          if l then records[pinfo.number] = pair(pinfo, l, true) end
          local record = records[pinfo.number]
          P[root](0, #B, top)
          local inner = join(tree, pinfo, l, root, true)
          local shown = inner or root
          local layer = unwrap_request(shown)
          local whole = gather(tree, pinfo, l, shown, true, record)
          shown = whole or shown
          local x = find_exchange(shown)
          if x and E[x].request then E[x].request() end
          if first and record then
            record.x, record.layer = x, layer
            keep(record)
            if inner then l.inner = record end
          end
          title(top, x)
          if record and record.response then outer:add(p_response, record.response):set_generated() end
        end

        local function response(tree, pinfo, range, root)
          local first = not pinfo.visited
          local l = first and link(pinfo) or nil
          start(range)
          top = tree:add(tapdeck, range)
          local outer = top
          if l then records[pinfo.number] = pair(pinfo, l, false) end
          local record = records[pinfo.number]
          recall(record)
          P[root](0, #B, top)
          if record then
            local owner = record
            local inner = join(tree, pinfo, l, root, false)
            if inner then
              if l then
                records[-pinfo.number] = l.inner
                l.inner = nil
              end
              owner = records[-pinfo.number] or owner
              recall(owner)
            end
            local shown, isPart, source = gather(tree, pinfo, l, inner or root, false, owner)
            owner = source or owner
            if not isPart then
              if owner.layer then unwrap_response(owner.layer, shown) end
              if owner.x and E[owner.x].response then E[owner.x].response() end
            end
            title(top, owner.x, true)
            outer:add(p_request, record.request):set_generated()
            outer:add(p_time, record.time):set_generated()
          else
            top:add_proto_expert_info(x_unpaired)
          end
        end

        local function other(tree, range, root)
          start(range)
          top = tree:add(tapdeck, range)
          P[root](0, #B, top)
        end

        local function one(tree, pinfo, range, command, answer)
          if range:len() == 0 then return end
          if pinfo.p2p_dir == 0 then
            if command then request(tree, pinfo, range, command) end
          elseif answer then
            response(tree, pinfo, range, answer)
          end
        end

        function tapdeck.dissector(tvb, pinfo, tree)
          local found = f_apdu()
          if found then
            if r_atr and f_atr() then return other(tree, f_atr().range, r_atr) end
            return one(tree, pinfo, found.range, r_command, r_response)
          end
          local frame = r_block and f_frame()
          if frame and f_block() then
            local range = frame.range
            -- The reader's frames and the card's, with their CRC; without one (FA, FB) only the field inside is known.
            local event = range:len() > 6 and range(1, 1):uint() or 0
            if event >= 0xFE then return one(tree, pinfo, range(4), r_block, r_block_answer) end
          end
          local inf = f_inf()
          if inf then return one(tree, pinfo, inf.range, r_command, r_response) end
        end

        register_postdissector(tapdeck)
        """#
}
