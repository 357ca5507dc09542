// SPDX-License-Identifier: MIT

extension LuaRuntime {
    /// Pairing, exchanges, gathers and the entry point, after the tables of the grammars.
    static let tail = #"""
        local f_apdu, f_atr, f_inf = Field.new("iso7816"), Field.new("iso7816.atr"), Field.new("iso14443.inf")
        local f_frame, f_block = Field.new("iso14443"), Field.new("iso14443.block_type")
        local f_interface, f_identifier = Field.new("frame.interface_id"), Field.new("frame.packet_id")
        local f_name, f_json = Field.new("frame.interface_name"), Field.new("json")

        local p_exchange = ProtoField.string("tapdeck.exchange", "exchange")
        local p_request = ProtoField.framenum("tapdeck.request", "request in", base.NONE, frametype.REQUEST)
        local p_response = ProtoField.framenum("tapdeck.response", "response in", base.NONE, frametype.RESPONSE)
        local p_time = ProtoField.relative_time("tapdeck.time", "time since the request")
        local p_code = ProtoField.bytes("tapdeck.pcscReader.code", "code")
        -- No packet has it: it is asked for only where the whole tree is.
        local p_shown = ProtoField.none("tapdeck.shown", "in no packet")
        local list = {p_exchange, p_request, p_response, p_time, p_code, p_shown}
        for _, f in ipairs(F) do list[#list + 1] = f end
        tapdeck.fields = list
        local experts = {x_truncated, x_missing, x_surplus, x_unknown, x_unknown_warn, x_form, x_sealed, x_unpaired}
        for _, x in ipairs(X) do experts[#experts + 1] = x end
        tapdeck.experts = experts

        -- What the first pass learnt, by frame number: the request of a response and back, seconds between them, the
        -- exchange, the layer, the bytes and the kind of a request, what parts were joined to, whose answer blocks carry.
        local asked, answered, delays, exchanges, layers, sent, kinds, wholes, carriers, joined, moods, links
        local PART = {}
        -- The request whose values are at hand.
        local current

        function tapdeck.init()
          asked, answered, delays, exchanges, layers, sent, kinds, wholes, carriers, joined, moods, links = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
          current = nil
        end

        """#

    /// What pairs, joins and moves sessions, after `views`.
    static let pairing = #"""
        local function link()
          local interface = f_interface()
          local key = interface and interface.value or 0
          local l = links[key]
          if not l then
            local name = f_name()
            l = {open = {}, gathers = {}, states = first_states, reader = name and name.value:match("^%a+:(%d+)$")}
            links[key] = l
          end
          return l
        end

        -- Finds the other half of this frame's exchange, in the first pass.
        local function pair(number, l, isRequest, at)
          local id = f_identifier()
          id = id and id.value
          if isRequest then
            if l.number and l.id then l.open[l.id:tonumber()] = {l.number, l.at} end
            l.number, l.id, l.at = number, id, at
            return
          end
          local request, since = l.number, l.at
          local other = id and l.id ~= id and l.open[id:tonumber()]
          if other then
            request, since = other[1], other[2]
            l.open[id:tonumber()] = nil
          elseif request then
            l.number = nil
          else
            return
          end
          asked[number], answered[request] = request, number
          delays[number] = at - since
        end

        -- Brings the values of a request back that is not the one just read.
        local function recall(request)
          if current == request or not sent[request] then return end
          local saved_range, saved_octets, saved_top, saved_teller = R, B, top, teller
          R, B, top, teller = nil, sent[request], nothing, nil
          A = B
          into_nothing()
          P[kinds[request]](0, #B, nothing)
          into_tree()
          R, B, top, teller = saved_range, saved_octets, saved_top, saved_teller
          depth = 0
          current = request
        end

        -- A message that other messages carried, or that was put together, as bytes of its own.
        local function show_whole(tree, octets, text)
          B, isJoined = octets, true
          if isAsking then A = B end
          if not isShown or #octets == 0 then return end
          R = ByteArray.new(octets, true):tvb(text):range()
          top = tree_add(tree, tapdeck, R)
          teller = top
          append(top, ", " .. text)
        end

        -- Which gathers a message may take part in, by its kind; first requests, then answers.
        local joins, gathers = {[true] = {}, [false] = {}}, {[true] = {}, [false] = {}}
        for i, g in ipairs(W) do
          local kinds = (g.decode and joins or gathers)[g.request]
          kinds[g.root] = kinds[g.root] or {}
          table.insert(kinds[g.root], i)
        end
        local none = {}

        local function truth(f) return f == nil or (f() or 0) ~= 0 end

        local carried
        -- Blocks that carry messages. Gives the carried message's root once it is whole.
        local function join(tree, number, l, root, isRequest)
          local list = joins[isRequest][root] or none
          for n = 1, #list do
            local i = list[n]
            local g = W[i]
            local takes = true
            if l then
              -- An answer is read by the grammar that read its command, and is a block like others when none did.
              takes = truth(g.condition) and (isRequest or l.inner and l.carrier == g.grammar)
              if takes then joined[number] = i end
            end
            if takes and joined[number] == i then
              if l then
                if isRequest then l.carrier = g.grammar end
                local s = l.gathers[i] or {}
                l.gathers[i] = s
                if #s > 0 and not truth(g.next) then
                  s = {}
                  l.gathers[i] = s
                end
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
                carried = octets(g.part)
                within(g.decode, g.part)
              end
              return g.decode
            end
          end
        end

        -- Answers, or commands, that travel in parts.
        local function gather(tree, number, l, root, isRequest, request)
          local list = gathers[isRequest][root] or none
          for n = 1, #list do
            local i = list[n]
            local g = W[i]
            if l then
              local s = l.gathers[i]
              local more = truth(g.more)
              if s and not truth(g.next) then
                s = nil
                l.gathers[i] = nil
              end
              if s or more then
                s = s or {request = request}
                l.gathers[i] = s
                s[#s + 1] = octets(g.part) or ""
                if more then
                  wholes[number] = PART
                else
                  l.gathers[i] = nil
                  J = table.concat(s)
                  local whole = g.yield and g.yield()
                  wholes[number] = whole and {whole, s.request} or PART
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
          return root, false, request
        end

        local commands, answers = {}, {}
        for x, label in pairs(Q) do commands[x], answers[x] = ": " .. label, ": " .. label .. ", answer" end

        -- The transitions of a state that an exchange may take, in order; false when there are none.
        local function transitions(state, x)
          local found = {}
          for _, t in ipairs(state) do
            if t.any or t.on[x] then found[#found + 1] = t end
          end
          state.by[x] = #found > 0 and found
          return state.by[x]
        end

        -- Moves every session that waits for this exchange; an earlier frame keeps the states that it saw.
        local function fire(l, x, ok)
          for i, session in next, sessions do
            local state = session[l.states[i]]
            local found = state and state.by[x]
            if state and found == nil then found = transitions(state, x) end
            for n = 1, found and #found or 0 do
              local t = found[n]
              if (t.ok == nil or t.ok == ok) and truth(t.condition) then
                if t.to and t.to ~= l.states[i] then
                  local moved = {}
                  for k, v in pairs(l.states) do moved[k] = v end
                  moved[i] = t.to
                  l.states = moved
                end
                break
              end
            end
          end
        end

        local function title(item, x, response)
          if not x then return end
          append(item, (response and answers or commands)[x])
          add(item, p_exchange, Q[x]):set_generated()
        end

        local function request(tree, pinfo, range, root)
          local number = pinfo.number
          -- Not pinfo.visited: the first pass of tshark -2 has no tree, so that nothing is seen in it.
          local l = not moods[number] and link() or nil
          start(tree, range)
          local outer = top
          A, isAsking = B, true
          if l then
            pair(number, l, true, pinfo.rel_ts)
            moods[number] = l.states
          end
          states = moods[number]
          P[root](0, #B, top)
          local inner = join(tree, number, l, root, true)
          local shown = inner or root
          local layer = unwrap_request(shown)
          shown = gather(tree, number, l, shown, true, number) or shown
          local x = find_exchange(shown)
          if x and E[x].request then E[x].request() end
          current = number
          if l then
            exchanges[number], layers[number], kinds[number] = x, layer, shown
            sent[number] = inner and not isJoined and carried or B
            if inner then l.inner = number end
            if x and E[x].alone then
              l.number = nil
              fire(l, x, true)
            end
          end
          title(top, x)
          if answered[number] then add(outer, p_response, answered[number]):set_generated() end
        end

        local function response(tree, pinfo, range, root)
          local number = pinfo.number
          local l = not moods[number] and link() or nil
          start(tree, range)
          local outer = top
          isAsking = false
          if l then pair(number, l, false, pinfo.rel_ts) end
          local owner = asked[number]
          if owner and l then moods[number] = l.states end
          states = moods[number] or first_states
          if not owner then
            P[root](0, #B, top)
            return top:add_proto_expert_info(x_unpaired)
          end
          recall(owner)
          P[root](0, #B, top)
          local inner = join(tree, number, l, root, false)
          if inner then
            if l then
              carriers[number] = l.inner
              l.inner = nil
            end
            owner = carriers[number] or owner
            recall(owner)
          end
          local shown, isPart, source = gather(tree, number, l, inner or root, false, owner)
          owner = source or owner
          local x = exchanges[owner]
          if not isPart then
            if layers[owner] then unwrap_response(layers[owner], shown) end
            if x and E[x].response then E[x].response() end
            if l and x then fire(l, x, succeeded(shown)) end
          end
          title(top, x, true)
          add(outer, p_request, asked[number]):set_generated()
          if isShown then
            local delay = floor(delays[number] * 1000000000 + 0.5)
            add(outer, p_time, NSTime(floor(delay / 1000000000), delay % 1000000000)):set_generated()
          end
        end

        local function other(tree, range, root)
          start(tree, range)
          P[root](0, #B, top)
        end

        -- What a recorder wrote of a reader: the card is another one, or an answer will not come.
        local function reader(tree, pinfo, whole, name)
          local text = whole:raw()
          local kind = text:match('^{"td":"(%a+)"')
          if kind == "error" then
            local code = text:match('"code":"(%x+)"')
            start(tree, whole)
            if isShown and code and #code % 2 == 0 then add(top, p_code, ByteArray.new(code):tvb("code"):range()) end
          end
          local event = kind == "reader" and text:match('"name":"(%a+)"')
          if moods[pinfo.number] or kind ~= "error" and (not event or event == "control") then return end
          moods[pinfo.number] = first_states
          for _, l in next, links do
            if l.reader == name then
              l.number = nil
              if event then
                l.gathers, l.open = {}, {}
                fire(l, event == "removal" and event or "reset", true)
              end
            end
          end
        end

        local function one(tree, pinfo, range, command, answer)
          if range:len() == 0 then return end
          if pinfo.p2p_dir == 0 then
            if command then request(tree, pinfo, range, command) end
          elseif answer then
            response(tree, pinfo, range, answer)
          end
        end

        -- The stock dissector takes any answer that begins with 3B or 3F for an ATR; one that a command waits for is none.
        local function awaited(number)
          if asked[number] then return true end
          local l = not moods[number] and link() or nil
          local id = f_identifier()
          return l and l.number and l.id == (id and id.value)
        end

        function tapdeck.dissector(tvb, pinfo, tree)
          local frame = r_block and f_frame()
          if frame and f_block() then
            -- The reader's frames (FE) and the card's (FF) have their CRC; of others only the field inside is known.
            local range = frame.range
            if range:len() > 4 and range(1, 1):uint() >= 0xFE then
              pace()
              return one(tree, pinfo, range(4), r_block, r_block_answer)
            end
          end
          local found = f_apdu()
          if found then
            pace()
            if r_atr and f_atr() and not awaited(pinfo.number) then return other(tree, found.range, r_atr) end
            return one(tree, pinfo, found.range, r_command, r_response)
          end
          local inf = f_inf()
          if inf then return one(tree, pinfo, inf.range, r_command, r_response) end
          local json = f_json()
          local name = json and f_name()
          name = name and name.value:match("^reader:(%d+)$")
          if name then return reader(tree, pinfo, json.range, name) end
        end

        register_postdissector(tapdeck)
        """#
}
