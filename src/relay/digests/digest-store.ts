import { type DigestEntry, DigestTable } from '../../domain/digest-table.ts'

/**
 * Digests that are searched, the most wanted first. A digest begins with its mark, 32 bits in little-endian order;
 * it may cost much to compute, and is only needed where something with that mark is remembered.
 */
export interface DigestSearch {
  readonly count: number
  mark(index: number): number
  digest(index: number): Buffer
}

/** A digest that was found: its position in the search, and its number. */
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
    search: DigestSearch,
    isPlausible: (found: FoundDigest) => boolean,
  ): FoundDigest | undefined | Promise<FoundDigest | undefined>
  remember(digest: Buffer, value: number, retention: Retention): void
  close(): Promise<void>
}

/** Digests in the memory of this process. */
export interface OwnDigests extends DigestStore {
  find(search: DigestSearch, isPlausible: (found: FoundDigest) => boolean): FoundDigest | undefined
  /** The entries that begin with one of these marks, each with the index of its mark. */
  startingWith(marks: Iterable<number>, most: number): (DigestEntry & { readonly index: number })[]
}

/** What a store remembers; also a part of its names in Redis. */
export type DigestKind = 'prompt' | 'session'

/** How a kind of digests is remembered. */
export interface DigestRules {
  readonly kind: DigestKind
  /** Minimum number of digests for which Redis is read if this node knows none of them. */
  readonly minSearched: number
  /** Whether the number of a digest may change, which nodes that have it in memory must learn. */
  readonly changes: boolean
  /** Whether no more than the maximum are remembered, in Redis too, and the one that was used longest ago gives way. */
  readonly isOrdered?: true
}

/** Maximum digests that are computed for one search. */
export const MAX_COMPARED = 8

/** Whether a remembered key is that of the digest at this position of the search. */
export function isDigestAt(search: DigestSearch, index: number, key: Uint8Array): boolean {
  return search.digest(index).compare(key, 0, key.length, 0, key.length) === 0
}

/** Searches one digest. */
export function searchFor(digest: Buffer): DigestSearch {
  return { count: 1, mark: () => digest.readUInt32LE(), digest: () => digest }
}

/** Remembers digests in the memory of this process. */
export class LocalDigests implements OwnDigests {
  readonly #table = new DigestTable()
  readonly #nowMs: () => number

  /** `nowMs`: a monotonic clock that began at 0. */
  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs
  }

  find(search: DigestSearch, isPlausible: (found: FoundDigest) => boolean): FoundDigest | undefined {
    const nowMs = this.#nowMs()
    let compared = 0
    for (let index = 0; index < search.count; index++) {
      if (!this.#table.hasMark(search.mark(index), nowMs)) continue
      const value = this.#table.get(search.digest(index), nowMs)
      if (value !== undefined && isPlausible({ index, value })) return { index, value }
      if (++compared === MAX_COMPARED) return undefined
    }
    return undefined
  }

  startingWith(marks: Iterable<number>, most: number): (DigestEntry & { readonly index: number })[] {
    const nowMs = this.#nowMs()
    const found: (DigestEntry & { readonly index: number })[] = []
    let index = 0
    for (const mark of marks) {
      for (const entry of this.#table.startingWith(mark, nowMs)) found.push({ ...entry, index })
      if (found.length >= most) return found
      index++
    }
    return found
  }

  remember(digest: Buffer, value: number, { ms, most }: Retention): void {
    const nowMs = this.#nowMs()
    this.#table.put(digest, value, nowMs + ms, nowMs, most)
  }

  async close(): Promise<void> {}
}
