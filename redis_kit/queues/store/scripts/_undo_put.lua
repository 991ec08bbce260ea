-- Remove new jobs again, as one of the writes was refused: its key is of a wrong type. Returns the first error among the
-- replies. So a put needs no commands that only ask for types.
-- needs  jobs, ready, sequence, owners
-- gives  undo_put
local function undo_put(to, ids, ...)
    redis.pcall("HDEL", jobs, unpack(ids))
    redis.pcall("ZREM", to, unpack(ids))
    if owners then redis.pcall("HDEL", owners, unpack(ids)) end
    if to == ready then redis.call("INCRBY", sequence, -#ids) end
    for _, reply in ipairs({...}) do
        if type(reply) == "table" then return reply end
    end
end
