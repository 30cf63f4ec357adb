import { GENERATION_FUNCTIONS } from './generation-script.ts'

/**
 * Script that applies one `ShareRequest`, atomically. Windows are packed lists in shared hashes, as a key for
 * each would take three times the memory: a version, which rises with each write, then slot and amount.
 * Expired windows are deleted when others in their hash are written, and with the whole hash when none is. A
 * window that is missing, older than the node knows, or unreadable counts as lost data.
 *
 * KEYS: the hash; the generation. ARGV: the field, window, slot width, slots ahead, max, the generation and
 * the version that the node knows, its slot, used, returned, kept, need, want, nodes; then age and amount of
 * all other use.
 *
 * Returns the generation and, unless the node knew another, the time, the version, the permits granted, their
 * slot, and slot and amount of the whole window. A new generation means that windows were lost: a
 * node gets permits only after it has reported again.
 */
export const SHARE_SCRIPT = `${GENERATION_FUNCTIONS}
local key, field = KEYS[1], ARGV[1]
local windowMs, widthMs, ahead, max = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local known = tonumber(ARGV[7])
local slot, used, returned, kept = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local need, want, nodes = tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14])

local function isCount(n)
  return type(n) == 'number' and n >= 0 and n <= 9007199254740991 and n == math.floor(n)
end

-- The list of a window; empty if there is none, nil if it cannot be read.
local function readWindow(named)
  local packed = readField(key, named, 16384)
  if packed == false then return {} end
  if packed == nil then return nil end
  local ok, list = pcall(cmsgpack.unpack, packed)
  if not ok or type(list) ~= 'table' or #list % 2 ~= 1 or #list > 1025 then return nil end
  for _, n in ipairs(list) do if not isCount(n) then return nil end end
  return list
end

local generation = readGeneration()
if generation ~= ARGV[6] then return { generation } end
local list = readWindow(field)
if not list or (list[1] or 0) < known then
  redis.call('DEL', key)
  return { newGeneration() }
end
local isNew = #list == 0
local version = math.max(nowMs, (list[1] or 0) + 1)

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
for i = 2, #list, 2 do addUnlessOver(list[i] > last and current or list[i], list[i + 1]) end
add(slot, -math.min(amounts[slot] or 0, used + returned + kept))
add(current, used)
for i = 15, #ARGV, 2 do addUnlessOver(math.ceil((nowMs - ARGV[i]) / widthMs), tonumber(ARGV[i + 1])) end
local free = math.max(0, max - kept - sum)
local granted = math.min(free, math.max(need, math.min(want, math.floor(free / (4 * nodes)))))
add(last, kept + granted)

local order = {}
for at, amount in pairs(amounts) do if amount > 0 then order[#order + 1] = at end end
table.sort(order)
local answer, kept_list = { generation, nowMs, version, granted, last }, { version }
for _, at in ipairs(order) do
  local n = #kept_list
  kept_list[n + 1], kept_list[n + 2] = at, amounts[at]
  answer[n + 5], answer[n + 6] = at, amounts[at]
end
-- Longer than any node remembers this window.
local keptMs = windowMs + (ahead + 1) * widthMs
redis.call('HSET', key, field, cmsgpack.pack(kept_list))
redis.call('PEXPIRE', key, keptMs)
if isNew then
  for _, other in ipairs(redis.call('HRANDFIELD', key, 3)) do
    local theirs = readWindow(other)
    if not theirs or (theirs[1] or 0) + keptMs <= nowMs then redis.call('HDEL', key, other) end
  end
end
return answer
`
