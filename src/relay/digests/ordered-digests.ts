import { DIGEST_KEY_BYTES, type DigestEntry } from '../../domain/digest-table.ts'
import {
  type DigestSearch,
  type FoundDigest,
  matchesDigestAt,
  type ProcessDigests,
  type Retention,
} from './digest-store.ts'

/** What is remembered of one digest, and until when (`expiresMs`, in milliseconds of the clock). */
interface Entry extends DigestEntry {
  readonly expiresMs: number
}

/**
 * Maximum number of entries that are removed when a digest is added: two, so that a lowered maximum is
 * reached gradually.
 */
const MAX_REMOVED = 2

/**
 * Remembers digests in the order of their last use. If there are more than the maximum, the one that was used
 * longest ago is forgotten. Of two digests with the same mark, only the later one is remembered, as in Redis.
 */
export class OrderedDigests implements ProcessDigests {
  /** The entries by the marks of their digests, in the order in which they were remembered. */
  readonly #entries = new Map<number, Entry>()
  readonly #nowMs: () => number

  /** `nowMs`: the clock, in Unix milliseconds. */
  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs
  }

  find(search: DigestSearch, isPlausible: (found: FoundDigest) => boolean): FoundDigest | undefined {
    for (let index = 0; index < search.count; index++) {
      const entry = this.#at(search.mark(index))
      if (!entry || !matchesDigestAt(search, index, entry.key)) continue
      const found = { index, value: entry.value }
      if (isPlausible(found)) return found
    }
    return undefined
  }

  startingWith(marks: Iterable<number>, most: number): (DigestEntry & { readonly index: number })[] {
    const found: (DigestEntry & { readonly index: number })[] = []
    let index = 0
    for (const mark of marks) {
      const entry = this.#at(mark)
      if (entry && found.push({ key: entry.key, value: entry.value, index }) >= most) break
      index++
    }
    return found
  }

  remember(digest: Buffer, value: number, { ms, most }: Retention): void {
    const nowMs = this.#nowMs()
    const mark = digest.readUInt32LE()
    this.#entries.delete(mark)
    // The key is copied, because a part of a larger buffer would keep the whole buffer in memory.
    this.#entries.set(mark, {
      key: Buffer.from(digest.subarray(0, DIGEST_KEY_BYTES)),
      value,
      expiresMs: nowMs + ms,
    })
    let removable = MAX_REMOVED
    for (const [oldest, { expiresMs }] of this.#entries) {
      if ((expiresMs > nowMs && this.#entries.size <= most) || removable-- === 0) break
      this.#entries.delete(oldest)
    }
  }

  async close(): Promise<void> {}

  #at(mark: number): Entry | undefined {
    const entry = this.#entries.get(mark)
    return entry && entry.expiresMs > this.#nowMs() ? entry : undefined
  }
}
