-- Add visitors to sketches: of a minute, an hour, a day, a week and a month, each a key with its expiry. A visitor who
-- does not change one is in the longer ones, too; but the days of a week may be in two months. The minute gets the
-- first visitors only: the others are not online any more.
-- needs  nothing
-- gives  wrong_sketch, add_visitors

local function wrong_sketch(sketches)
    for _, sketch in ipairs(sketches) do
        local header = redis.call("GETRANGE", sketch[1], 0, 15)
        if header ~= "" and (string.sub(header, 1, 4) ~= "HYLL" or #header < 16) then
            return sketch[1] .. " is corrupt: it has no header"
        end
    end
end

local function add_visitors(sketches, visitors, online)
    for place, sketch in ipairs(sketches) do
        local count = place == 1 and online or #visitors
        local changed = count > 0 and redis.pcall("PFADD", sketch[1], unpack(visitors, 1, count))
        if type(changed) == "table" then
            return sketch[1] .. " is corrupt: " .. changed.err
        elseif changed == 0 and count == #visitors and place <= 3 then
            return
        elseif changed == 1 then
            redis.call("PEXPIRE", sketch[1], sketch[2])
        end
    end
end
