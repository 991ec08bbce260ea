#!lua flags=no-writes
-- Return jobs of one state, in the order of _read_jobs.
--
-- KEYS[1]  jobs       hash: id -> record
-- KEYS[2]  ready      zset: id -> place
-- KEYS[3]  scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[4]  dead       zset: id -> when it died, ms
-- KEYS[5]  reasons    hash: id -> why it died
-- KEYS[6]  running    zset of scores 0: worker/claim/place/id
-- KEYS[7]  limits     hash: limit -> what it allows, lane -> what it does
-- KEYS[8]  parked     zset of scores 0: what waits for a limit
-- ARGV[1]  state
-- ARGV[2]  offset     how many are passed over
-- ARGV[3]  limit      how many, at most
-- ARGV[4]  cut        bytes of a record that are returned; a longer one is without its attempts but the last
-- ARGV[5]  bytes      of records that are read, at most, but for the last
-- returns  id, record, when it died or is to start in ms, or "", why or for which limit a ready job waits, or "", worker or "" of each

local jobs, ready, scheduled, dead, reasons, running, limits, parked = unpack(KEYS)
local state = ARGV[1]
local key = ({ready = ready, scheduled = scheduled, dead = dead, running = running})[state]
-- @include _awaited_limit
-- @include _read_jobs
return (read_jobs(state, key, tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])))
