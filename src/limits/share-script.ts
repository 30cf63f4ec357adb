/**
 * Script that applies one `ShareRequest`, atomically. Windows are packed lists of slot and amount in shared
 * hashes, as a key for each would take three times the memory. Expired windows are deleted when others in
 * their hash are written, and with the whole hash when none is. An unreadable window counts as lost data.
 *
 * KEYS: the hash; the generation. ARGV: the field, window, slot width, slots ahead, max, the generation that
 * the node knows, its slot, used, returned, kept, need, want, nodes; then age and amount of all other use.
 *
 * Returns the generation and, unless the node knew another, the time, the permits granted, their slot, and
 * slot and amount of the whole window. A new generation means that windows were lost: nobody is granted
 * permits before reporting again.
 */
export const SHARE_SCRIPT = `
local key, field = KEYS[1], ARGV[1]
local windowMs, widthMs, ahead, max = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local slot, used, returned, kept = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local need, want, nodes = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)

local function newGeneration()
  local generation = time[1] .. '.' .. time[2]
  redis.call('SET', KEYS[2], generation)
  return generation
end

local function isCount(n)
  return type(n) == 'number' and n >= 0 and n <= 9007199254740991 and n == math.floor(n)
end

local function unpacked(packed)
  local ok, list = pcall(cmsgpack.unpack, packed)
  if not ok or type(list) ~= 'table' or #list % 2 ~= 0 or #list == 0 or #list > 1024 then return nil end
  for _, n in ipairs(list) do if not isCount(n) then return nil end end
  return list
end

local generation = redis.pcall('GET', KEYS[2])
if type(generation) ~= 'string' then generation = newGeneration() end
if generation ~= ARGV[6] then return { generation } end
local packed = redis.pcall('HGET', key, field)
local list = {}
if packed then
  list = type(packed) == 'string' and unpacked(packed)
  if not list then
    redis.call('DEL', key)
    return { newGeneration() }
  end
end

local current = math.ceil(nowMs / widthMs)
local last = current + ahead
local amounts, sum = {}, 0
local function add(at, amount)
  amounts[at] = (amounts[at] or 0) + amount
  sum = sum + amount
end
local function addUnlessOver(at, amount)
  if at * widthMs + windowMs > nowMs then add(at, amount) end
end
for i = 1, #list, 2 do addUnlessOver(list[i] > last and current or list[i], list[i + 1]) end
add(slot, -math.min(amounts[slot] or 0, used + returned + kept))
add(current, used)
for i = 14, #ARGV, 2 do addUnlessOver(math.ceil((nowMs - ARGV[i]) / widthMs), tonumber(ARGV[i + 1])) end
local free = math.max(0, max - kept - sum)
local granted = math.min(free, math.max(need, math.min(want, math.floor(free / (4 * nodes)))))
add(last, kept + granted)

local order = {}
for at, amount in pairs(amounts) do if amount > 0 then order[#order + 1] = at end end
table.sort(order)
local answer, kept_list = { generation, nowMs, granted, last }, {}
for _, at in ipairs(order) do
  local n = #kept_list
  kept_list[n + 1], kept_list[n + 2] = at, amounts[at]
  answer[n + 5], answer[n + 6] = at, amounts[at]
end
if #kept_list == 0 then
  if packed then redis.call('HDEL', key, field) end
  return answer
end
redis.call('HSET', key, field, cmsgpack.pack(kept_list))
redis.call('PEXPIRE', key, windowMs + (ahead + 1) * widthMs)
if not packed then
  for _, other in ipairs(redis.call('HRANDFIELD', key, 3)) do
    local theirs = unpacked(redis.call('HGET', key, other))
    if not theirs or theirs[#theirs - 1] * widthMs + windowMs <= nowMs then redis.call('HDEL', key, other) end
  end
end
return answer
`
