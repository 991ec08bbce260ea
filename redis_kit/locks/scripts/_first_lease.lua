-- Return of the lease that ends first: ms until then, ms since it was acquired, and the text stored about it. Its key
-- has the tag of these keys, and differs from the caller's in the token only.
-- needs  now, token
-- gives  first_lease
local function first_lease(first, own)
    local other = string.match(first[1] or "", "^%S+") or token
    local stored = redis.call("GET", string.sub(own, 1, -1 - #token) .. other) or ""
    local seconds, rest = string.match(stored, "^(%d+) (%d+) ")
    local since = seconds and seconds * 1000 + math.floor(rest / 1000) or now
    return (first[2] or now + 1000) - now, math.max(now - since, 0), stored
end
