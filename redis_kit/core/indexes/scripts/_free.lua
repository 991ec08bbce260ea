-- Delete keys of generations. The memory of a bitmap is freed at once, so a server would stop for many large ones.
--
-- needs  nothing
-- gives  free

-- Those after the first ones expire in turn.
local function free(keys, first, last)
    for place = first, last do
        if place < first + 4 then
            redis.call("UNLINK", keys[place])
        else
            redis.call("PEXPIRE", keys[place], 20 * (place - first))
        end
    end
end
