import { DIGEST_KEY_BYTES } from '../../domain/digest-table.ts'
import type { Link } from '../../ipc/link.ts'
import type { DigestKind, DigestStore, FoundDigest, LocalDigests, Retention } from './digest-store.ts'

/** Maximum digests in one request. */
const MAX_DIGESTS = 4_096

/** Digests of the workers of one machine, which the owner of their database remembers. */
export class OwnerDigests implements DigestStore {
  readonly #link: Link
  readonly #kind: DigestKind

  constructor(link: Link, kind: DigestKind) {
    this.#link = link
    this.#kind = kind
  }

  async find(
    digests: readonly Buffer[],
    isPlausible: (found: FoundDigest) => boolean,
  ): Promise<FoundDigest | undefined> {
    const keys = digests.slice(0, MAX_DIGESTS).map((digest) => digest.subarray(0, DIGEST_KEY_BYTES))
    const found = await this.#link
      .request<readonly FoundDigest[]>(`find ${this.#kind}`, Buffer.concat(keys))
      .catch(() => [])
    return found.find(isPlausible)
  }

  // The owner reads this before the settlement of the call, which is sent later over the same socket.
  remember(digest: Buffer, value: number, { ms, most }: Retention): void {
    const key = Buffer.from(digest.subarray(0, DIGEST_KEY_BYTES))
    this.#link.send(`remember ${this.#kind}`, [key, value, ms, most])
  }

  async close(): Promise<void> {}
}

/** Answers the requests of a worker. */
export function answerDigests(link: Link, kind: DigestKind, store: LocalDigests): void {
  link.answer(`find ${kind}`, (keys: Uint8Array) => {
    const digests: Buffer[] = []
    for (let at = 0; at < keys.length; at += DIGEST_KEY_BYTES)
      digests.push(Buffer.from(keys.subarray(at, at + DIGEST_KEY_BYTES)))
    const found: FoundDigest[] = []
    store.find(digests, (one) => found.push(one) === MAX_FOUND)
    return found
  })
  link.on(`remember ${kind}`, ([key, value, ms, most]: [Uint8Array, number, number, number]) =>
    store.remember(Buffer.from(key), value, { ms, most }),
  )
}

/** Number of digests that are returned, in case the first are not plausible. */
const MAX_FOUND = 8
