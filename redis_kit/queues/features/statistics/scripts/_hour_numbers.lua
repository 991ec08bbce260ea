-- Return five numbers of an hour since 1970, from those of its minutes.
-- needs  each_minute
-- gives  hour_numbers
local function hour_numbers(hour)
    local sums = {0, 0, 0, 0, 0}
    each_minute(60 * hour, 60 * hour + 59, function(_, done, failed, begun, late, latest)
        sums = {sums[1] + done, sums[2] + failed, sums[3] + begun, sums[4] + late, math.max(sums[5], latest)}
    end)
    return sums
end
