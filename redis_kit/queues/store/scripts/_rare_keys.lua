-- Whether the keys were given that few queues need: after `usual` keys, and before those of the results, which are from ARGV[at]
-- on. A key costs the server as much as half a command, so a caller gives these only after a script asked for them.
-- needs  KEYS, ARGV
-- gives  has_rare_keys
local function has_rare_keys(usual, at)
    return #KEYS > usual + 2 * (#ARGV - at + 1) / 3
end
