import type { RedisClientType } from '@redis/client'
import { RedisScript } from './redis-connection.ts'

/**
 * Writes an entry, and removes those that have expired or, beyond the maximum, were written longest ago. KEYS: the names
 * of the entries by when they were written, and by when they expire. ARGV: what the keys of entries begin with; the rest
 * of this one's key; the entry; the time; its lifetime; the maximum; how many entries may be removed; for how long the
 * names are kept. Times are in milliseconds.
 */
const SCRIPT = new RedisScript(`
local prefix, name, entry = ARGV[1], ARGV[2], ARGV[3]
local now, lifetime, most = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local used, expiring = KEYS[1], KEYS[2]
redis.call('SET', prefix .. name, entry, 'PX', lifetime)
redis.call('ZADD', used, now, name)
redis.call('ZADD', expiring, now + lifetime, name)
local function remove(names)
  for _, gone in ipairs(names) do
    redis.call('DEL', prefix .. gone)
    redis.call('ZREM', used, gone)
    redis.call('ZREM', expiring, gone)
  end
end
remove(redis.call('ZRANGEBYSCORE', expiring, '-inf', now, 'LIMIT', 0, ARGV[7]))
local excess = math.min(redis.call('ZCARD', used) - most, tonumber(ARGV[7]))
if excess > 0 then remove(redis.call('ZRANGE', used, 0, excess - 1)) end
redis.call('PEXPIRE', used, ARGV[8])
redis.call('PEXPIRE', expiring, ARGV[8])
`)

/** Entries that one write may remove, so that a smaller maximum is reached without a long pause of the server. */
const MAX_REMOVED = 16
/** Nothing here is kept for longer: 24 hours. */
const LONGEST_MS = 86_400_000

/** How long and how many entries are kept. */
interface EntryRetention {
  readonly ms: number
  /** Beyond it, the entry that was written longest ago is removed. */
  readonly most: number
}

/** Entries of all nodes in Redis, bounded in number: beyond it, the one that was written longest ago gives way. */
export class BoundedEntries {
  readonly #prefix: string
  readonly #keys: readonly string[]

  /** `kind`: what the entries are; also a part of their names. */
  constructor(namespace: string, kind: string) {
    this.#prefix = `${namespace}:${kind}:`
    this.#keys = [`${namespace}:${kind}s:used`, `${namespace}:${kind}s:expiring`]
  }

  /** Loads the script into the server before its first use, which would otherwise take two requests. */
  async load(client: RedisClientType): Promise<void> {
    await SCRIPT.load(client)
  }

  /** The key of an entry. */
  keyOf(name: string): string {
    return `${this.#prefix}${name}`
  }

  /** Writes an entry; rejects if the server does not answer. `nowMs`: Unix milliseconds of the gateway's clock. */
  async set(
    client: RedisClientType,
    name: string,
    entry: string,
    nowMs: number,
    { ms, most }: EntryRetention,
  ): Promise<void> {
    const numbers = [nowMs, Math.ceil(ms), most, MAX_REMOVED, LONGEST_MS]
    await SCRIPT.run(client, this.#keys, [this.#prefix, name, entry, ...numbers.map(String)])
  }
}
