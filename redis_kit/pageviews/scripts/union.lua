#!lua
-- Merge the sketches of a page's periods, and count their union with the sketch of another page.
--
-- KEYS[1]     merged    string: where the sketches are merged; there is none afterwards
-- KEYS[2...]  sketches  string: those of the page
-- ARGV[1]     other     merged sketch of another page, as this script returns it; "" for none
-- returns  {visitors of both pages, visitors of the page, merged sketch of the page}

local merged = KEYS[1]
redis.call("PFMERGE", unpack(KEYS))
local count, sketch = redis.call("PFCOUNT", merged), redis.call("GET", merged)
if ARGV[1] ~= "" then
    redis.call("SET", merged, ARGV[1])
    redis.call("PFMERGE", unpack(KEYS))
end
local union = redis.call("PFCOUNT", merged)
redis.call("DEL", merged)
return {union, count, sketch}
