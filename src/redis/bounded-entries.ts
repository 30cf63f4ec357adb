import type { RedisClientType } from '@redis/client'
import { RedisScript } from './redis-connection.ts'

/**
 * Writes an entry. Removes expired entries and, if there are more than the maximum, those written longest
 * ago. KEYS: two sorted sets of the entries' names, by time of writing and by time of expiry. ARGV: prefix of
 * the entries' keys; name of this entry; its value; the current time; its lifetime; maximum number of
 * entries; maximum number of entries to remove; lifetime of the two sets. Times are in milliseconds.
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

/**
 * Reads the first bytes of entries, so that an entry which somebody has enlarged takes no memory here. ARGV:
 * position of the last byte. Entries that are missing, or not strings, are read as empty texts.
 */
const READ = new RedisScript(`
local found = {}
for index, key in ipairs(KEYS) do
  local entry = redis.pcall('GETRANGE', key, 0, ARGV[1])
  found[index] = type(entry) == 'string' and entry or ''
end
return found
`)

/**
 * Maximum number of entries that one write removes, so that a lowered maximum does not block the server for
 * long.
 */
const MAX_REMOVED = 16
/** Maximum lifetime of an entry: 24 hours. */
const LONGEST_MS = 86_400_000

/** How many entries are kept, and for how many milliseconds. */
interface EntryRetention {
  readonly ms: number
  /** Maximum number of entries. If there are more, the one written longest ago is removed. */
  readonly most: number
}

/**
 * Entries of all nodes in Redis. If there are more than the maximum, the one written longest ago is removed.
 */
export class BoundedEntries {
  readonly #prefix: string
  readonly #keys: readonly string[]

  /** `kind`: the kind of the entries, which is part of their Redis keys. */
  constructor(namespace: string, kind: string) {
    this.#prefix = `${namespace}:${kind}:`
    this.#keys = [`${namespace}:${kind}s:used`, `${namespace}:${kind}s:expiring`]
  }

  /** Loads the scripts into the server before their first use, which would otherwise take two requests. */
  async load(client: RedisClientType): Promise<void> {
    await Promise.all([SCRIPT.load(client), READ.load(client)])
  }

  /** The Redis key of the entry with this name. */
  keyOf(name: string): string {
    return `${this.#prefix}${name}`
  }

  /**
   * Reads entries by their names: the first `maxLength` + 1 bytes of each, so that longer ones can be told apart.
   * A missing entry is an empty text. Rejects if the server does not answer.
   */
  async read(
    client: RedisClientType,
    names: readonly string[],
    maxLength: number,
  ): Promise<readonly unknown[]> {
    const keys = names.map((name) => this.keyOf(name))
    const found = await READ.run(client, keys, [String(maxLength)])
    return Array.isArray(found) ? (found as unknown[]) : []
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
