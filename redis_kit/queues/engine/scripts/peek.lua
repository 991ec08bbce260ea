#!lua flags=no-writes
-- Return jobs of one state, in the order of _read_jobs.
--
-- @keys ready, scheduled, running, dead
-- ARGV[1]  state
-- ARGV[2]  offset     how many are passed over
-- ARGV[3]  limit      how many, at most
-- ARGV[4]  cut        bytes of a record that are returned; a longer one is without its attempts but the last
-- ARGV[5]  bytes      of records that are read, at most, but for the last
-- returns  id, record, when it died or is to start in ms, or "", why or for which limit a ready job waits, or "", worker or "" of each

local state = ARGV[1]
local key = ({ready = ready, scheduled = scheduled, dead = dead, running = running})[state]
-- @include _read_jobs
return (read_jobs(state, key, tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])))
