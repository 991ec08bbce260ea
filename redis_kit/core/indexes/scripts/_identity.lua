-- The identity of the data of a server: another one after a restart, and on a replica that becomes the master.
--
-- needs  nothing
-- gives  read_identity

local function read_identity()
    local info = redis.call("INFO", "server", "replication")
    return string.match(info, "run_id:(%w+)") .. string.match(info, "master_replid:(%w+)")
end
