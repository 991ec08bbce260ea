-- Return the entry of a list of identities that begins with the hash of an identity.
-- needs  nothing
-- gives  entry_of

local function entry_of(key, identity_hash)
    for _, entry in ipairs(redis.call("ZRANGE", key, 0, -1)) do
        if string.sub(entry, 1, #identity_hash) == identity_hash then
            return entry
        end
    end
end
