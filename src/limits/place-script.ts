import { GENERATION_FUNCTIONS } from './generation-script.ts'

/**
 * Script that applies one `PlaceReport`, atomically. A hash for each subject has the places of each node,
 * with the time of its report in seconds. Only nodes that run count, and reports of the last minute; the hash
 * expires after two. Where it lacks what this node reported, or cannot be read, data was lost.
 *
 * KEYS: the hash; the generation. ARGV: the generation that the node knows, the node, places that it has,
 * wants, has reported (-1 = unknown), and of all nodes; then the other nodes that run.
 *
 * Returns the generation and, unless the node knew another, the number of places granted.
 */
export const PLACE_SCRIPT = `${GENERATION_FUNCTIONS}
local key, node = KEYS[1], ARGV[2]
local held, want, reported, max = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local nowS = tonumber(time[1])

-- The places of a node; 0 if there is no report of the last minute, nil if it cannot be read.
local function placesOf(name)
  local report = readField(key, name, 40)
  if report == false then return 0 end
  local places, reportedS = string.match(report or '', '^(%d+) (%d+)$')
  if not places then return nil end
  if math.abs(nowS - reportedS) > 60 then return 0 end
  return tonumber(places)
end

local generation = readGeneration()
if generation ~= ARGV[1] then return { generation } end
local fields = redis.pcall('HLEN', key)
local own = placesOf(node)
local others, isLost = 0, type(fields) ~= 'number' or fields > 10000 or (reported > 0 and own ~= reported)
for i = 7, #ARGV do
  local places = placesOf(ARGV[i])
  if not places then isLost = true else others = others + places end
end
if isLost then
  redis.call('DEL', key)
  return { newGeneration() }
end
local granted = math.max(0, math.min(want, max - others - held))
if held + granted == 0 then
  redis.call('HDEL', key, node)
else
  redis.call('HSET', key, node, string.format('%d %d', held + granted, nowS))
  redis.call('EXPIRE', key, 120)
end
return { generation, granted }
`
