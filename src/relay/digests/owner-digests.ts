import { DIGEST_KEY_BYTES } from '../../domain/digest-table.ts'
import type { Link } from '../../ipc/link.ts'
import {
  type DigestKind,
  type DigestSearch,
  type DigestStore,
  type FoundDigest,
  matchesDigestAt,
  MAX_COMPUTED_DIGESTS,
  type ProcessDigests,
  type Retention,
} from './digest-store.ts'

/** Maximum number of digests that are searched in one request. */
const MAX_MARKS = 4_096

/** A remembered digest, and the position in the search at which it may belong. */
interface IndexedEntry extends FoundDigest {
  readonly key: Uint8Array
}

/**
 * Digests, as a worker process remembers and finds them. The process that owns the machine's database
 * remembers them for all workers.
 */
export class OwnerDigests implements DigestStore {
  readonly #link: Link
  readonly #kind: DigestKind

  constructor(link: Link, kind: DigestKind) {
    this.#link = link
    this.#kind = kind
  }

  async find(
    search: DigestSearch,
    isPlausible: (found: FoundDigest) => boolean,
  ): Promise<FoundDigest | undefined> {
    const marks = Uint32Array.from({ length: Math.min(search.count, MAX_MARKS) }, (_, index) =>
      search.mark(index),
    )
    const entries = await this.#link
      .request<readonly IndexedEntry[]>(`find ${this.#kind}`, marks)
      .catch(() => [])
    return entries.find((entry) => matchesDigestAt(search, entry.index, entry.key) && isPlausible(entry))
  }

  // The process that owns the database reads this message before the call's settlement, which is sent later
  // over the same socket.
  remember(owner: number, digest: Buffer, value: number, { ms, most }: Retention): void {
    const key = Buffer.from(digest.subarray(0, DIGEST_KEY_BYTES))
    this.#link.send(`remember ${this.#kind}`, [owner, key, value, ms, most])
  }

  async close(): Promise<void> {}
}

/** Answers the requests that a worker sends with `OwnerDigests`. */
export function answerDigestRequests(link: Link, kind: DigestKind, store: ProcessDigests): void {
  link.answer(`find ${kind}`, (marks: Uint32Array) => store.startingWith(marks, MAX_COMPUTED_DIGESTS))
  link.on(`remember ${kind}`, ([owner, key, value, ms, most]: [number, Uint8Array, number, number, number]) =>
    store.remember(owner, Buffer.from(key), value, { ms, most }),
  )
}
