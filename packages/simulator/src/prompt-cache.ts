import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

const MAX_PREFIXES = 200_000
const MAX_MACHINES = 10_000
const MINUTE_MS = 60_000

export interface PromptCacheOptions {
  /** Returns the time in milliseconds, from which it is decided whether a prefix has expired. */
  readonly now?: () => number
  readonly maxPrefixes?: number
  /**
   * Maximum number of requests per minute with the same beginning and `prompt_cache_key` that one simulated
   * machine of OpenAI serves. Further requests go to another machine, which has its own cache. Without this
   * option, one machine serves all requests.
   */
  readonly requestsPerMachine?: number
}

/**
 * The cached prefixes of prompts, each with the time at which it expires. When a prefix is used, its lifetime
 * begins again.
 */
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

  /** Whether a prefix is cached. If so, its lifetime begins again. */
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

  /** Caches a prefix. If it is already cached, the longer lifetime counts. */
  write(digest: string, lifetimeMs: number): void {
    const before = this.use(digest) ? (this.#prefixes.get(digest)?.lifetimeMs ?? 0) : 0
    this.#keep(digest, Math.max(before, lifetimeMs))
  }

  /** Returns the number of the machine that serves the next request with this routing value. */
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

/** Computes the digest of a prefix that is extended by a part. */
export function extendDigest(digest: string, part: string): string {
  return createHash('sha1').update(digest).update('\n').update(part).digest('base64')
}
