import { hash } from 'node:crypto'
import type { RedisClientType } from '@redis/client'
import { RedisConnection } from '../redis/redis-connection.ts'
import { RedisScript } from '../redis/script.ts'
import type { CountedLimit } from './limit-counter.ts'
import { type ShareResponse, type ShareRequest, slotsOf } from './share-messages.ts'
import { SHARE_SCRIPT } from './share-script.ts'
import type { Peers } from './peers.ts'
import { readShareResponse, readHeartbeat } from './redis-responses.ts'
import { ServerClock } from './server-clock.ts'

/** How long an exchange may take; the request that waits for it waits a little longer at most. */
const EXCHANGE_MS = 40
/** How long a node counts after its last beat. */
const NODE_MS = 3_000
/**
 * How long a memory that is new is not relied on: by then all who were there have noticed, and told it what
 * they let through.
 */
const FILLING_MS = 600
/**
 * Hashes that the windows of one limit are spread over: at a million of them each is small enough to be kept
 * packed.
 */
const HASHES = 16_384

/**
 * Tells that a node lives. KEYS: the nodes; the memory. ARGV: the node, for how long it counts. The answer:
 * now, the memory, how many live.
 */
const BEAT_SCRIPT = `
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local memory = redis.pcall('GET', KEYS[2])
if type(memory) ~= 'string' then
  memory = time[1] .. '.' .. time[2]
  redis.call('SET', KEYS[2], memory)
end
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then redis.call('DEL', KEYS[1]) end
redis.call('ZADD', KEYS[1], nowMs, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', nowMs - ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. nowMs, '+inf')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return { nowMs, memory, redis.call('ZCARD', KEYS[1]) }
`

/** How the nodes reach each other through Redis. */
export interface RedisPeersOptions {
  readonly url: string
  /** Begins all keys: what has the same one shares its limits. */
  readonly namespace: string
  /** This node, among those that share them. */
  readonly node: string
  /** Hears when the server is reached, and with a reason when it is not any more. */
  readonly onReachability: (isThere: boolean, reason?: string) => void
}

/**
 * The other nodes, through a Redis server. What it says is looked at, never believed beyond what a limit
 * allows.
 */
export class RedisPeers implements Peers {
  readonly #options: RedisPeersOptions
  readonly #link: RedisConnection
  readonly #beat = new RedisScript(BEAT_SCRIPT)
  readonly #exchange = new RedisScript(SHARE_SCRIPT)
  readonly #nodesKey: string
  readonly #memoryKey: string
  #memory: string | undefined
  readonly #clock = new ServerClock()
  #nodes = 1
  /** The memory is a new one: how many nodes there were before, and until when it is not relied on. */
  #filling: { readonly nodes: number; readonly untilMs: number } | undefined
  /** Answers, and in good time. */
  #answers = false
  #wasThere: boolean | undefined

  constructor(options: RedisPeersOptions) {
    this.#options = options
    this.#nodesKey = `${options.namespace}:nodes`
    this.#memoryKey = `${options.namespace}:memory`
    this.#link = new RedisConnection(options.url, {
      onConnected: (client) => this.#exchange.load(client),
      heartbeat: (client) => this.#live(client),
      onClose: (client) => client.zRem(this.#nodesKey, options.node),
      onLost: (reason) => this.#away(reason),
    })
  }

  /** Resolves when it is known whether the server can be reached. */
  get firstAttempt(): Promise<void> {
    return this.#link.firstAttempt
  }

  get isReachable(): boolean {
    return this.#answers && this.#link.client !== undefined
  }

  get isRefilling(): boolean {
    if (this.#filling && performance.now() > this.#filling.untilMs) this.#filling = undefined
    return this.#filling !== undefined
  }

  get nodes(): number {
    return Math.max(1, this.#nodes, this.#filling?.nodes ?? 1)
  }

  get generation(): string | undefined {
    return this.#memory === undefined ? undefined : `${this.#memory} ${this.#clock.steps}`
  }

  async exchange(counted: CountedLimit, question: ShareRequest): Promise<ShareResponse | 'stale'> {
    const client = this.#link.client
    if (!client) throw new Error('there is no connection')
    const { widthMs, ahead } = slotsOf(question.windowMs)
    const { key, field } = this.#place(counted)
    const { slot, used, returned: back, kept, added, need, want, max: most, windowMs } = question
    const numbers = [slot, used, back, kept, need, want, this.nodes, ...added.flat()]
    const words = [field, windowMs, widthMs, ahead, most, this.#memory ?? '', ...numbers]
    const running = this.#exchange.run(client, [key, this.#memoryKey], words.map(String))
    try {
      const answer = readShareResponse(await within(running, EXCHANGE_MS), question)
      if ('memory' in answer) {
        if (this.#memory !== undefined && answer.memory !== this.#memory) this.#refill(answer.memory)
        this.#memory = answer.memory
        return 'stale'
      }
      return answer
    } catch (error) {
      // Nobody else is to wait for it, until it has answered a beat.
      this.#answers = false
      this.#link.checkNow()
      throw error
    }
  }

  /** Says that this node is gone, and ends the connection. */
  close(): Promise<void> {
    return this.#link.close()
  }

  async #live(client: RedisClientType): Promise<void> {
    const sentMs = performance.now()
    const keys = [this.#nodesKey, this.#memoryKey]
    const beat = readHeartbeat(await this.#beat.run(client, keys, [this.#options.node, String(NODE_MS)]))
    const { nowMs, memory, nodes } = beat
    this.#clock.observe(nowMs, sentMs)
    if (this.#memory !== undefined && (memory !== this.#memory || this.isRefilling)) this.#refill(memory, nowMs)
    this.#memory = memory
    this.#nodes = nodes
    this.#answers = performance.now() - sentMs < EXCHANGE_MS
    if (!this.#answers || this.#wasThere === true) return
    this.#wasThere = true
    this.#options.onReachability(true)
  }

  // By the age of the memory, which is the same for all: they begin to rely on it together. A server that
  // lies about it only gains the time of one filling.
  #refill(memory: string, serverMs?: number): void {
    const [seconds = 0, microseconds = 0] = memory.split('.').map(Number)
    const ageMs = serverMs === undefined ? 0 : Math.max(0, serverMs - seconds * 1000 - microseconds / 1000)
    const untilMs = performance.now() + Math.max(0, FILLING_MS - ageMs)
    const before = memory === this.#memory ? this.#filling?.untilMs : undefined
    this.#filling = { nodes: this.nodes, untilMs: Math.min(untilMs, before ?? untilMs) }
  }

  #away(reason: string): void {
    this.#answers = false
    if (this.#wasThere === false) return
    this.#wasThere = false
    this.#options.onReachability(false, reason)
  }

  // Who is counted is an address, a user, the name of a model: nobody who looks into Redis needs to know.
  #place({ name, subject: whom, windowMs }: CountedLimit): { key: string; field: string } {
    const { namespace } = this.#options
    const digest = hash('sha256', `${namespace}\n${name}\n${whom}`, 'buffer')
    const part = digest.readUInt32LE(12) % HASHES
    return {
      key: `${namespace}:${name.replace(' ', ':')}:${windowMs}:${part}`,
      field: digest.toString('base64url', 0, 9),
    }
  }
}

async function within<Result>(work: Promise<Result>, limitMs: number): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>()
  const late = new Error(`no answer within ${limitMs} ms`)
  // Where this node was late itself, the answer may be there already, and only not be read.
  const timer = setTimeout(() => setImmediate(() => reject(late)), limitMs)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
    work.catch(() => {})
  }
}
