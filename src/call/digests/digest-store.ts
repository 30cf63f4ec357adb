import { DigestTable } from '../../domain/digest-table.ts'

/**
 * Digests that are searched, in order of preference. A digest's mark is its first 32 bits, in little-endian
 * order. Computing a digest may be expensive, so it is computed only if the store has an entry with the same
 * mark.
 */
export interface DigestSearch {
  /** Id of the user whose digests are searched. */
  readonly owner: number
  readonly count: number
  mark(index: number): number
  digest(index: number): Buffer
}

/** A digest that was found: its position in the search, and the number stored with it. */
export interface FoundDigest {
  readonly index: number
  readonly value: number
}

/** How long digests are remembered, in milliseconds, and the maximum number of remembered digests. */
export interface Retention {
  readonly ms: number
  readonly most: number
}

/**
 * Remembers a number for each digest of a prompt or a session, for this process or all nodes. The numbers
 * that it returns may be wrong, so callers check them.
 */
export interface DigestStore {
  /** Finds the first digest that is remembered with a number for which `isPlausible` returns true. */
  find(
    search: DigestSearch,
    isPlausible: (found: FoundDigest) => boolean,
  ): FoundDigest | undefined | Promise<FoundDigest | undefined>
  /** `owner`: id of the user, whose other digests give way if the user has more than a fair share. */
  remember(owner: number, digest: Buffer, value: number, retention: Retention): void
  close(): Promise<void>
}

/** Maximum number of digests that are computed for one search. */
export const MAX_COMPUTED_DIGESTS = 8

/** Whether a remembered key belongs to the digest at this position of the search. */
export function matchesDigestAt(search: DigestSearch, index: number, key: Uint8Array): boolean {
  return search.digest(index).compare(key, 0, key.length, 0, key.length) === 0
}

export function searchForOneDigest(owner: number, digest: Buffer): DigestSearch {
  return { owner, count: 1, mark: () => digest.readUInt32LE(), digest: () => digest }
}

/** Remembers digests in the memory of this process. */
export class LocalDigests implements DigestStore {
  readonly #table = new DigestTable()
  readonly #nowMs: () => number

  /** `nowMs`: a monotonic clock in milliseconds. */
  constructor(nowMs = () => performance.now()) {
    const startMs = nowMs()
    this.#nowMs = () => nowMs() - startMs
  }

  find(search: DigestSearch, isPlausible: (found: FoundDigest) => boolean): FoundDigest | undefined {
    const nowMs = this.#nowMs()
    let compared = 0
    for (let index = 0; index < search.count; index++) {
      if (!this.#table.hasMark(search.mark(index), nowMs)) continue
      const value = this.#table.get(search.digest(index), nowMs)
      if (value !== undefined && isPlausible({ index, value })) return { index, value }
      if (++compared === MAX_COMPUTED_DIGESTS) return undefined
    }
    return undefined
  }

  remember(owner: number, digest: Buffer, value: number, { ms, most }: Retention): void {
    const nowMs = this.#nowMs()
    this.#table.put(owner, digest, value, nowMs + ms, nowMs, most)
  }

  async close(): Promise<void> {}
}
