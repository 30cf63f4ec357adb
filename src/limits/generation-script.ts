/**
 * Lua functions for the generation, in KEYS[2]: the time, as text, since which the windows have been
 * complete. An unreadable one is replaced; its length is checked before it is read. `newGeneration` is called
 * when windows were lost, so that all nodes report again.
 */
export const GENERATION_FUNCTIONS = `
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)

local function newGeneration()
  local generation = time[1] .. '.' .. time[2]
  redis.call('SET', KEYS[2], generation)
  return generation
end

local function readGeneration()
  local length = redis.pcall('STRLEN', KEYS[2])
  if type(length) ~= 'number' or length == 0 or length > 64 then return newGeneration() end
  local generation = redis.call('GET', KEYS[2])
  if not string.match(generation, '^%d+%.%d+$') then return newGeneration() end
  return generation
end

-- A field of a hash, if it is short enough; false if there is none, nil if it cannot be read.
local function readField(key, field, maxBytes)
  local length = redis.pcall('HSTRLEN', key, field)
  if type(length) ~= 'number' or length > maxBytes then return nil end
  return redis.call('HGET', key, field)
end
`
