import type { RedisClientType } from '@redis/client'
import { RedisScript } from './redis-connection.ts'

/**
 * Writes an entry. Removes expired entries and, while there are more than the maximum, the oldest of an owner:
 * of this one if it has more than its fair share (the maximum divided by the number of owners), else of the one
 * with the most entries. KEYS: two sorted sets, of the entries (`owner:name`) by time of expiry, and of the
 * owners by number of entries; each owner has a third one, of its entries by time of writing. ARGV: prefix of
 * the entries' keys; owner and name of this entry; its value; the current time; its lifetime; maximum number of
 * entries; maximum number of entries to remove; lifetime of the sets. Times are in milliseconds.
 */
const SCRIPT = new RedisScript(`
local prefix, owner, name, entry = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local now, lifetime, most = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local removable = tonumber(ARGV[8])
local expiring, owners = KEYS[1], KEYS[2]
local function setOf(one) return expiring .. ':' .. one end
redis.call('SET', prefix .. name, entry, 'PX', lifetime)
if redis.call('ZADD', setOf(owner), now, name) == 1 then redis.call('ZINCRBY', owners, 1, owner) end
redis.call('ZADD', expiring, now + lifetime, owner .. ':' .. name)
local function remove(one, gone)
  redis.call('DEL', prefix .. gone)
  redis.call('ZREM', expiring, one .. ':' .. gone)
  redis.call('ZREM', setOf(one), gone)
  local left = redis.call('ZCARD', setOf(one))
  if left > 0 then redis.call('ZADD', owners, left, one) else redis.call('ZREM', owners, one) end
end
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', expiring, '-inf', now, 'LIMIT', 0, removable)) do
  remove(string.match(gone, '^([^:]*):(.*)$'))
end
while removable > 0 and redis.call('ZCARD', expiring) > most do
  local own = redis.call('ZCARD', setOf(owner))
  local giver = owner
  if own < 2 or own * redis.call('ZCARD', owners) <= most then
    giver = redis.call('ZREVRANGE', owners, 0, 0)[1] or owner
  end
  local gone = redis.call('ZRANGE', setOf(giver), 0, 0)[1]
  if gone then remove(giver, gone) else redis.call('ZREM', owners, giver) end
  removable = removable - 1
end
redis.call('PEXPIRE', expiring, ARGV[9])
redis.call('PEXPIRE', owners, ARGV[9])
redis.call('PEXPIRE', setOf(owner), ARGV[9])
`)

/**
 * Reads the first bytes of entries, so that an entry that another program has enlarged takes no memory here. ARGV:
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
export interface EntryRetention {
  readonly ms: number
  readonly most: number
}

/** An entry, and the id of the user to whom it belongs. */
interface OwnedEntry {
  readonly owner: number
  readonly name: string
  readonly entry: string
}

/**
 * Entries of all nodes in Redis. If there are more than the maximum, those of users with more than a fair share
 * give way first.
 */
export class BoundedEntries {
  readonly #prefix: string
  readonly #keys: readonly string[]

  /** `kind`: the kind of the entries, which is part of their Redis keys. */
  constructor(namespace: string, kind: string) {
    this.#prefix = `${namespace}:${kind}:`
    this.#keys = [`${namespace}:${kind}s:all`, `${namespace}:${kind}s:owners`]
  }

  /** Loads the scripts into the server before their first use, which would otherwise take two requests. */
  async load(client: RedisClientType): Promise<void> {
    await Promise.all([SCRIPT.load(client), READ.load(client)])
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
    const keys = names.map((name) => `${this.#prefix}${name}`)
    const found = await READ.run(client, keys, [String(maxLength)])
    return Array.isArray(found) ? (found as unknown[]) : []
  }

  /** Writes an entry; rejects if the server does not answer. `nowMs`: Unix milliseconds of the gateway's clock. */
  async set(
    client: RedisClientType,
    { owner, name, entry }: OwnedEntry,
    nowMs: number,
    { ms, most }: EntryRetention,
  ): Promise<void> {
    const numbers = [nowMs, Math.ceil(ms), most, MAX_REMOVED, LONGEST_MS]
    await SCRIPT.run(client, this.#keys, [this.#prefix, String(owner), name, entry, ...numbers.map(String)])
  }
}
