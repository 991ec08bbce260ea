-- The identity of the data of a server: another one after a restart, and on a replica that becomes the master.
--
-- needs  nothing
-- gives  read_identity

local function read_identity()
    local info, identity = redis.call("INFO", "server", "replication"), ""
    for _, name in ipairs({"run_id:", "master_replid:"}) do -- plainly: a pattern takes longer than all else
        local _, last = string.find(info, name, 1, true)
        identity = identity .. string.sub(info, last + 1, last + 40)
    end
    return identity
end
