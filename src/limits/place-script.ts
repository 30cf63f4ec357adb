/**
 * Script that applies one `PlaceReport`, atomically. A hash for each subject has the places of each node,
 * with the time of its report in seconds. Nodes without heartbeats do not count; their reports are removed
 * after a minute, and the hash with the last one.
 *
 * KEYS: the hash; the generation; the nodes. ARGV: the generation that the node knows, the node, places that
 * it has, wants, and of all nodes; the time in milliseconds that a node counts after its last heartbeat.
 *
 * Returns the generation and, unless the node knew another, the number of places granted.
 */
export const PLACE_SCRIPT = `
local held, want, max, ttlMs = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local time = redis.call('TIME')
local nowS = tonumber(time[1])
local nowMs = nowS * 1000 + math.floor(time[2] / 1000)
local generation = redis.pcall('GET', KEYS[2])
if type(generation) ~= 'string' then
  generation = time[1] .. '.' .. time[2]
  redis.call('SET', KEYS[2], generation)
end
if generation ~= ARGV[1] then return { generation } end
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end

local others = 0
local reports = redis.call('HGETALL', KEYS[1])
for i = 1, #reports, 2 do
  local places, reportedS = string.match(reports[i + 1], '^(%d+) (%d+)$')
  if not places or math.abs(nowS - reportedS) > 60 then
    redis.call('HDEL', KEYS[1], reports[i])
  elseif reports[i] ~= ARGV[2] then
    local seenMs = redis.pcall('ZSCORE', KEYS[3], reports[i])
    if type(seenMs) == 'string' and tonumber(seenMs) > nowMs - ttlMs then others = others + places end
  end
end
local granted = math.max(0, math.min(want, max - others - held))
if held + granted == 0 then
  redis.call('HDEL', KEYS[1], ARGV[2])
else
  redis.call('HSET', KEYS[1], ARGV[2], string.format('%d %d', held + granted, nowS))
  redis.call('EXPIRE', KEYS[1], 120)
end
return { generation, granted }
`
