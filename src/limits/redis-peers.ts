import { hash } from 'node:crypto'
import type { RedisClientType } from '@redis/client'
import { withTimeout } from '../domain/with-timeout.ts'
import { RedisConnection, type RedisConnectionHandlers, RedisScript } from '../redis/redis-connection.ts'
import type { CountedLimit } from './rate-counter.ts'
import {
  type PermitPeers,
  type SlotPeers,
  type SlotReport,
  type PermitRequest,
  type PermitResponse,
  bucketsOf,
} from './peers.ts'

/**
 * Lua functions for the generation in KEYS[2]: the time, as text, since which the stored windows are
 * complete. An unreadable generation is replaced; its length is checked before it is read. `newGeneration` is
 * called when windows were lost, so that all nodes report again.
 */
const GENERATION_FUNCTIONS = `
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

/** Timeouts of communication with Redis, in milliseconds. */
export interface PeerTimeouts {
  /** Timeout of one report or request; a client's request that waits for it may wait slightly longer. */
  readonly exchangeMs: number
  /** Timeout of connecting and of every other command; the connection is then closed. */
  readonly connectionMs: number
  /**
   * Milliseconds for which a new generation is not trusted, because all nodes must first notice it and report
   * again what they have used.
   */
  readonly refillingMs: number
}
const TIMES: PeerTimeouts = { exchangeMs: 40, connectionMs: 1_000, refillingMs: 600 }
/**
 * Milliseconds after which a node reports its slots although nothing has changed, so that it notices if Redis
 * has lost them.
 */
const REFRESH_MS = 1_000
/**
 * Number of Redis hashes over which the windows of one limit are spread. With so many, each hash keeps Redis'
 * compact encoding even with a million windows.
 */
const HASH_COUNT = 16_384

/**
 * Script of a heartbeat. Expects the generation's key as KEYS[2]; KEYS[1] is unused. Writes the generation
 * again, which fails if the server takes no writes: no node can count there. Returns the server's time and
 * the generation.
 */
const HEARTBEAT_SCRIPT = `${GENERATION_FUNCTIONS}
local generation = readGeneration()
redis.call('SET', KEYS[2], generation)
return { nowMs, generation }
`

/** Options for sharing limits with other nodes through Redis. */
interface RedisPeersOptions {
  readonly url: string
  /** Prefix of all keys; nodes with the same prefix share their limits. */
  readonly namespace: string
  /** Name of this node; `names` returns the names of all running nodes. */
  readonly node: string
  readonly names: () => readonly string[]
  /** Called when Redis becomes reachable, and with a reason when it becomes unreachable. */
  readonly onReachability: (isReachable: boolean, reason?: string) => void
  /** Timeouts that replace the default ones, for slow machines. */
  readonly times?: PeerTimeouts
}

/**
 * The other nodes, reached through Redis. Responses are validated, so that a faulty server cannot raise a
 * limit.
 */
export class RedisPeers implements PermitPeers, SlotPeers {
  readonly #options: RedisPeersOptions
  readonly #times: PeerTimeouts
  readonly #connection: RedisConnection
  readonly #heartbeatScript = new RedisScript(HEARTBEAT_SCRIPT)
  readonly #permitScript = new RedisScript(PERMIT_SCRIPT)
  readonly #slotScript = new RedisScript(SLOT_SCRIPT)
  readonly #generationKey: string
  #generation: string | undefined
  readonly #clock = new ServerClock()
  /** Until when the generation is too new to be trusted, in milliseconds on the monotonic clock. */
  #refillingUntilMs = Number.NEGATIVE_INFINITY
  /** Whether the server has answered the last request in time. */
  #isResponsive = false
  #wasReachable: boolean | undefined

  constructor(options: RedisPeersOptions) {
    this.#options = options
    this.#times = options.times ?? TIMES
    this.#generationKey = `${options.namespace}:memory`
    const handlers: RedisConnectionHandlers = {
      onConnected: (client) => this.#permitScript.load(client),
      heartbeat: (client) => this.#heartbeat(client),
      onLost: (reason) => this.#onLost(reason),
    }
    this.#connection = new RedisConnection(options.url, handlers, this.#times.connectionMs)
  }

  /** Resolves when the first attempt to connect is over, whether it succeeded or not. */
  get firstAttempt(): Promise<void> {
    return this.#connection.firstAttempt
  }

  get isReachable(): boolean {
    return this.#isResponsive && this.#connection.client !== undefined
  }

  get isRefilling(): boolean {
    return performance.now() <= this.#refillingUntilMs
  }

  get nodes(): number {
    return Math.max(1, this.#options.names().length)
  }

  get refreshMs(): number {
    return REFRESH_MS
  }

  get generation(): string | undefined {
    return this.#generation === undefined ? undefined : `${this.#generation} ${this.#clock.steps}`
  }

  exchangePermits(counted: CountedLimit, request: PermitRequest): Promise<PermitResponse | 'stale'> {
    const { key, field } = this.#locate(counted)
    const { widthMs, ahead } = bucketsOf(request.windowMs)
    const { known, bucket, used, returned, kept, added, need, want, max, windowMs } = request
    const numbers = [known, bucket, used, returned, kept, need, want, this.nodes, ...added.flat()]
    const args = [field, windowMs, widthMs, ahead, max, this.#generation ?? '', ...numbers]
    return this.#send(this.#permitScript, [key, this.#generationKey], args, (value) =>
      readPermitResponse(value, request),
    )
  }

  async exchangeSlots(subject: string, report: SlotReport): Promise<number | 'stale'> {
    const { held, want, reported = -1, max } = report
    const { namespace, node, names } = this.#options
    const keys = [`${namespace}:calls:${subject}`, this.#generationKey]
    const others = names().filter((name) => name !== node)
    const args = [this.#generation ?? '', node, held, want, reported, max, ...others]
    const response = await this.#send(this.#slotScript, keys, args, (value) =>
      readSlotResponse(value, report),
    )
    return response === 'stale' ? response : response.granted
  }

  async #send<Result extends object>(
    script: RedisScript,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (value: unknown) => Result | { generation: string },
  ): Promise<Result | 'stale'> {
    const client = this.#connection.client
    if (!client) throw new Error('there is no connection')
    const running = script.run(client, keys, args.map(String))
    try {
      const response = read(await withTimeout(running, this.#times.exchangeMs))
      if ('generation' in response) {
        if (this.#generation !== undefined && response.generation !== this.#generation)
          this.#startRefilling(response.generation)
        this.#generation = response.generation
        return 'stale'
      }
      return response
    } catch (error) {
      // Do not let further requests wait for the server until it has answered a heartbeat.
      this.#isResponsive = false
      this.#connection.checkNow()
      throw error
    }
  }

  /** Closes the connection. */
  close(): Promise<void> {
    return this.#connection.close()
  }

  async #heartbeat(client: RedisClientType): Promise<void> {
    const sentMs = performance.now()
    const { nowMs, generation } = readHeartbeat(
      // The key is passed twice, because the scripts expect the generation in KEYS[2].
      await this.#heartbeatScript.run(client, [this.#generationKey, this.#generationKey], []),
    )
    this.#clock.observe(nowMs, sentMs)
    if (this.#generation !== undefined && (generation !== this.#generation || this.isRefilling))
      this.#startRefilling(generation, nowMs)
    this.#generation = generation
    this.#isResponsive = performance.now() - sentMs < this.#times.exchangeMs
    if (!this.#isResponsive || this.#wasReachable === true) return
    this.#wasReachable = true
    this.#options.onReachability(true)
  }

  // Sets how long the generation is not trusted: by its age, so that all nodes trust it from the same moment
  // on. A wrong age can only make this time too short once.
  #startRefilling(generation: string, serverMs?: number): void {
    const [seconds = 0, microseconds = 0] = generation.split('.').map(Number)
    const ageMs = serverMs === undefined ? 0 : Math.max(0, serverMs - seconds * 1000 - microseconds / 1000)
    const untilMs = performance.now() + Math.max(0, this.#times.refillingMs - ageMs)
    const isSame = generation === this.#generation && this.isRefilling
    this.#refillingUntilMs = isSame ? Math.min(untilMs, this.#refillingUntilMs) : untilMs
  }

  #onLost(reason: string): void {
    this.#isResponsive = false
    if (this.#wasReachable === false) return
    this.#wasReachable = false
    this.#options.onReachability(false, reason)
  }

  // The subject is hashed, because not everyone who can read Redis should see addresses or usernames.
  #locate({ name, subject, windowMs }: CountedLimit): { key: string; field: string } {
    const { namespace } = this.#options
    const digest = hash('sha256', `${namespace}\n${name}\n${subject}`, 'buffer')
    const part = digest.readUInt32LE(12) % HASH_COUNT
    return {
      key: `${namespace}:${name.replace(' ', ':')}:${windowMs}:${part}`,
      field: digest.toString('base64url', 0, 9),
    }
  }
}

/**
 * Script that applies one `SlotReport` atomically. A hash per subject contains the slots of each node, with
 * the time of its report in seconds. Only running nodes count, with reports of the last three seconds, as nodes
 * report every second; the hash expires after two minutes. If it lacks what this node reported in the last
 * minute, or is unreadable, data was lost.
 *
 * KEYS: the hash; the generation. ARGV: the generation that the node knows, the node, the numbers of slots
 * that it has, wants, has reported (-1 = unknown), and of all nodes; then the other running nodes.
 *
 * Returns the generation and, unless the node knew a different one, the number of slots granted.
 */
const SLOT_SCRIPT = `${GENERATION_FUNCTIONS}
local key, node = KEYS[1], ARGV[2]
local held, want, reported, max = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local nowS = tonumber(time[1])

-- The slots of a node; 0 if its last report is older, nil if it cannot be read.
local function slotsOf(name, maxSeconds)
  local report = readField(key, name, 40)
  if report == false then return 0 end
  local slots, reportedS = string.match(report or '', '^(%d+) (%d+)$')
  if not slots then return nil end
  if math.abs(nowS - reportedS) > maxSeconds then return 0 end
  return tonumber(slots)
end

local generation = readGeneration()
if generation ~= ARGV[1] then return { generation } end
local fields = redis.pcall('HLEN', key)
local own = slotsOf(node, 60)
local others, isLost = 0, type(fields) ~= 'number' or fields > 10000 or (reported > 0 and own ~= reported)
for i = 7, #ARGV do
  local slots = slotsOf(ARGV[i], 3)
  if not slots then isLost = true else others = others + slots end
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

/**
 * Script that applies one `PermitRequest` atomically. Windows are packed lists in shared hashes, because a
 * key for each would take three times the memory: a version, which rises with each write, then bucket and
 * amount. Expired windows are deleted when others in their hash are written, or with the whole hash when none
 * is. A window that is missing, older than the node knows, or unreadable counts as lost data.
 *
 * KEYS: the hash; the generation. ARGV: the field, window, bucket width, buckets ahead, max, the generation
 * and the version that the node knows, its bucket, used, returned, kept, need, want, nodes; then age and
 * amount of all other use.
 *
 * Returns the generation and, unless the node knew a different one, the time, the version, the permits
 * granted, their bucket, and bucket and amount of the whole window. A new generation means that windows were
 * lost; a node gets permits only after it has reported again.
 */
const PERMIT_SCRIPT = `${GENERATION_FUNCTIONS}
local key, field = KEYS[1], ARGV[1]
local windowMs, widthMs, ahead, max = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local known = tonumber(ARGV[7])
local bucket, used, returned, kept = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
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
add(bucket, -math.min(amounts[bucket] or 0, used + returned + kept))
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

/** Maximum number of amounts in a response; more than the number of buckets in any window. */
const MAX_AMOUNTS = 512

/** Parses the response to a heartbeat. Throws if it is invalid. */
export function readHeartbeat(value: unknown): { nowMs: number; generation: string } {
  const [nowMs, generation] = list(value)
  return { nowMs: count(nowMs), generation: text(generation) }
}

/**
 * Parses the response to a `PermitRequest`; `{ generation }` alone means that the request was stale. Throws
 * if it is invalid.
 */
export function readPermitResponse(
  value: unknown,
  request: PermitRequest,
): PermitResponse | { generation: string } {
  const [generation, ...rest] = list(value)
  if (rest.length === 0) return { generation: text(generation) }
  const [nowMs = 0, version = 0, granted = 0, bucket = 0, ...pairs] = rest.map(count)
  if (rest.length < 4 || pairs.length % 2 !== 0 || pairs.length > 2 * MAX_AMOUNTS) throw invalidResponse()
  const { widthMs, ahead } = bucketsOf(request.windowMs)
  if (granted > Math.max(request.need, request.want)) throw invalidResponse()
  if (bucket > Math.ceil(nowMs / widthMs) + ahead) throw invalidResponse()
  const amounts = Array.from(
    { length: pairs.length / 2 },
    (_, i) => [pairs[2 * i] ?? 0, pairs[2 * i + 1] ?? 0] as const,
  )
  if (amounts.some(([at], i) => at > bucket || at <= (amounts[i - 1]?.[0] ?? -1))) throw invalidResponse()
  return { nowMs, version, granted, bucket, amounts }
}

/**
 * Parses the response to a `SlotReport`; `{ generation }` alone means that the report was stale. Throws if
 * it is invalid.
 */
export function readSlotResponse(
  value: unknown,
  { held, want, max }: SlotReport,
): { granted: number } | { generation: string } {
  const [generation, granted, ...rest] = list(value)
  if (granted === undefined) return { generation: text(generation) }
  if (rest.length > 0 || count(granted) > Math.max(0, Math.min(want, max - held))) throw invalidResponse()
  return { granted: count(granted) }
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0) throw invalidResponse()
  return value as readonly unknown[]
}

function count(value: unknown): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw invalidResponse()
  return value
}

function text(value: unknown): string {
  if (typeof value !== 'string' || !/^[\d.]{1,64}$/.test(value)) throw invalidResponse()
  return value
}

function invalidResponse(): Error {
  return new Error('the Redis server sent an invalid response')
}

/** Minimum jump of the clock, in milliseconds, that counts as a step; smaller ones may be network delay. */
const MIN_STEP_MS = 2_000

/**
 * Detects if the server's clock is set forward, which lets everything that the server counts expire too
 * early.
 */
export class ServerClock {
  #aheadMs: number | undefined
  #steps = 0

  /** Number of detected steps of the clock. */
  get steps(): number {
    return this.#steps
  }

  /**
   * Compares the server's time with the time of the request, `nowMs`, on this process's monotonic clock; both
   * in milliseconds.
   */
  observe(serverMs: number, nowMs: number): void {
    const aheadMs = serverMs - nowMs
    if (this.#aheadMs !== undefined && aheadMs - this.#aheadMs > MIN_STEP_MS) this.#steps += 1
    this.#aheadMs = aheadMs
  }
}
