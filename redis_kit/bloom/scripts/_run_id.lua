-- The identity of the server's process.
--
-- needs  nothing
-- gives  run_id

-- It changes with a restart and with a failover, which may lose the latest writes.
local function run_id()
    return string.match(redis.call("INFO", "server"), "run_id:(%w+)") or ""
end
