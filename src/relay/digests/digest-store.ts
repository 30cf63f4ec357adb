import { DigestTable } from '../../domain/digest-table.ts'

/** A digest that was found: its position in the list, and its number. */
export interface FoundDigest {
  readonly index: number
  readonly value: number
}

/** How long and how many digests are remembered. */
export interface Retention {
  readonly ms: number
  readonly most: number
}

/**
 * Numbers by digest, shared by the processes of one gateway: what is remembered of prompts and sessions. What it
 * returns is not trusted.
 */
export interface DigestStore {
  /** Finds the first digest that is remembered with a number for which `isPlausible` returns true. */
  find(
    digests: readonly Buffer[],
    isPlausible: (found: FoundDigest) => boolean,
  ): FoundDigest | undefined | Promise<FoundDigest | undefined>
  remember(digest: Buffer, value: number, retention: Retention): void
  close(): Promise<void>
}

/** What a store remembers; also a part of its names in Redis. */
export type DigestKind = 'prompt' | 'session'

/** How a kind of digests is remembered. */
export interface DigestRules {
  readonly kind: DigestKind
  /** Minimum number of digests for which Redis is read if this node knows none of them. */
  readonly minSearched: number
  /** For how long an entry of this number is remembered, if that is not the same for all. */
  readonly lifetimeMs?: (value: number) => number
  /** Whether the number of a digest may change, which nodes that have it in memory must learn. */
  readonly changes: boolean
}

/** Remembers digests in the memory of this process. */
export class LocalDigests implements DigestStore {
  readonly #table: DigestTable
  readonly #nowMs: () => number

  /** `nowMs`: a monotonic clock that began at 0. */
  constructor({ lifetimeMs }: Pick<DigestRules, 'lifetimeMs'>, nowMs = () => performance.now()) {
    this.#table = new DigestTable(lifetimeMs)
    this.#nowMs = nowMs
  }

  find(digests: readonly Buffer[], isPlausible: (found: FoundDigest) => boolean): FoundDigest | undefined {
    const nowMs = this.#nowMs()
    for (const [index, digest] of digests.entries()) {
      const value = this.#table.get(digest, nowMs)
      if (value !== undefined && isPlausible({ index, value })) return { index, value }
    }
    return undefined
  }

  remember(digest: Buffer, value: number, { ms, most }: Retention): void {
    const nowMs = this.#nowMs()
    this.#table.put(digest, value, nowMs + ms, nowMs, most)
  }

  async close(): Promise<void> {}
}
