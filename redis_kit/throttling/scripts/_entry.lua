-- Return the entry of a list of identities that begins with the hash of an identity.
-- needs  nothing
-- gives  entry_of

-- ``likely`` is an entry to look for first: without it, or if the list has another text of the identity, the server goes
-- through the list.
local function entry_of(key, identity_hash, likely)
    if likely and redis.call("ZSCORE", key, likely) then
        return likely
    end
    local cursor, found = "0", nil
    repeat
        local reply = redis.call("ZSCAN", key, cursor, "MATCH", identity_hash .. " *", "COUNT", 1000)
        cursor, found = reply[1], reply[2][1]
    until found or cursor == "0"
    return found
end
