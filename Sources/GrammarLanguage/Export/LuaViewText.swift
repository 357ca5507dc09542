// SPDX-License-Identifier: MIT

extension LuaRuntime {
    /// How items come into Wireshark's tree: all of them, those that somebody asks for, or none.
    static let views = #"""
        -- Every packet leaves some dozens of small objects, each with a finalizer. Collecting the young ones alone takes half
        -- the time of walking the whole heap; Lua 5.3 cannot, and waits for about 16 MiB of them.
        local packets, isGenerational = 0, false
        local function pace()
          packets = packets + 1
          if packets == 1 then isGenerational = pcall(collectgarbage, "generational") end
          if not isGenerational and packets % 1024 == 1 then
            collectgarbage("setpause", 150 + floor(1638400 / (collectgarbage("count") + 1)))
          end
        end

        -- An item that is shown nowhere. While nobody asks for our fields (a list without a filter on them), messages are
        -- read for their pairing and their expert infos alone.
        local nothing, teller = {}, nil
        local function nowhere() return nothing end
        nothing.set_generated, nothing.set_hidden = nowhere, nowhere
        function nothing.add_proto_expert_info(_, info, text)
          if teller then complain(teller, info, text) end
        end

        -- Wireshark's own functions, taken out of their classes once.
        local tree_add, tree_add_le, tree_append, tree_set_text, tree_set_len, referenced, range_range
        local isShown, isVisible, isJoined, isAsking, own, whole_tree

        -- While a filter or a column asks for some fields and nobody looks at the tree, a range is made for those alone: until
        -- then it is three numbers, of the range asked for last.
        local LATER, later_range, later_pos, later_count = {}, nil, nil, nil
        local function later(r, pos, n)
          later_range, later_pos, later_count = r, pos, n
          return LATER
        end
        local function wanted(into, p, f, r, v)
          if not referenced(whole_tree, f) then return nothing end
          if p == nothing then p = top end
          if r == LATER then r = range_range(later_range, later_pos, later_count) end
          if v == nil then return into(p, f, r) end
          return into(p, f, r, v)
        end
        local function wanted_add(p, f, r, v) return wanted(tree_add, p, f, r, v) end
        local function wanted_add_le(p, f, r, v) return wanted(tree_add_le, p, f, r, v) end

        local function into_nothing()
          add, add_le, add_text, append, set_text, set_len, range = nowhere, nowhere, nowhere, nowhere, nowhere, nowhere, nowhere
        end
        local function into_tree()
          if not isShown then return into_nothing() end
          if isVisible then
            add, add_le, add_text, append, set_text, set_len, range =
              tree_add, tree_add_le, tree_add, tree_append, tree_set_text, tree_set_len, range_range
          else
            add, add_le, add_text, append, set_text, set_len, range =
              wanted_add, wanted_add_le, nowhere, nowhere, nowhere, nowhere, later
          end
        end

        local function start(tree, whole)
          if not own then
            own = Dissector.get("tapdeck")
            tree_add, tree_add_le, tree_append, referenced = tree.add, tree.add_le, tree.append_text, tree.referenced
            tree_set_text, tree_set_len, range_range = tree.set_text, tree.set_len, whole.range
          end
          isShown, isJoined = referenced(tree, own), false
          B = whole:raw()
          depth, isSealed = 0, false
          if isShown then
            isVisible, whole_tree = referenced(tree, p_shown), tree
            R, top = whole, tree_add(tree, tapdeck, whole)
            teller = top
          else
            R, top, teller = nil, nothing, tree
          end
          into_tree()
        end

        """#
}
