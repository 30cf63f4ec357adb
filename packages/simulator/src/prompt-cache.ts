import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

const MAX_PREFIXES = 200_000
const MAX_MACHINES = 10_000
const MINUTE_MS = 60_000

/** Options of `PromptCache`. */
export interface PromptCacheOptions {
  /** The time in milliseconds, which decides when a prefix has expired. */
  readonly now?: () => number
  readonly maxPrefixes?: number
  /**
   * Requests a minute with the same beginning and `prompt_cache_key` that one machine of OpenAI serves; others are
   * served by a further machine, whose cache is its own. Without it, one machine serves all of them.
   */
  readonly requestsPerMachine?: number
}

/** Cached prefixes of prompts, each with the time at which it expires. A use starts its lifetime anew. */
export class PromptCache {
  readonly #prefixes: LRUCache<string, { readonly lifetimeMs: number; readonly expiresAt: number }>
  readonly #machines = new LRUCache<string, { readonly minute: number; readonly requests: number }>({
    max: MAX_MACHINES,
  })
  readonly #now: () => number
  readonly #requestsPerMachine: number

  constructor({
    now = Date.now,
    maxPrefixes = MAX_PREFIXES,
    requestsPerMachine = Infinity,
  }: PromptCacheOptions = {}) {
    this.#prefixes = new LRUCache({ max: maxPrefixes })
    this.#now = now
    this.#requestsPerMachine = requestsPerMachine
  }

  /** Whether a prefix is cached; its lifetime starts anew if it is. */
  use(digest: string): boolean {
    const found = this.#prefixes.get(digest)
    if (!found) return false
    if (found.expiresAt <= this.#now()) {
      this.#prefixes.delete(digest)
      return false
    }
    this.#keep(digest, found.lifetimeMs)
    return true
  }

  /** Caches a prefix. One that is already cached keeps the longer lifetime. */
  write(digest: string, lifetimeMs: number): void {
    const before = this.use(digest) ? (this.#prefixes.get(digest)?.lifetimeMs ?? 0) : 0
    this.#keep(digest, Math.max(before, lifetimeMs))
  }

  /** Returns the machine that serves a request which is routed by this value. */
  machineFor(route: string): number {
    const minute = Math.floor(this.#now() / MINUTE_MS)
    const last = this.#machines.get(route)
    const before = last?.minute === minute ? last.requests : 0
    this.#machines.set(route, { minute, requests: before + 1 })
    return Math.floor(before / this.#requestsPerMachine)
  }

  #keep(digest: string, lifetimeMs: number): void {
    this.#prefixes.set(digest, { lifetimeMs, expiresAt: this.#now() + lifetimeMs })
  }
}

/** Extends the digest of a prefix by a part. */
export function extended(digest: string, part: string): string {
  return createHash('sha1').update(digest).update('\n').update(part).digest('base64')
}
