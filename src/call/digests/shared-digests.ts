import { DIGEST_KEY_BYTES } from '../../domain/digest-table.ts'
import {
  type Codec,
  type SharedEntry,
  SharedTable,
  type SharedTableOptions,
} from '../../redis/shared-table.ts'
import {
  type DigestSearch,
  type DigestStore,
  type FoundDigest,
  LocalDigests,
  matchesDigestAt,
  MAX_COMPUTED_DIGESTS,
  type Retention,
  searchForOneDigest,
} from './digest-store.ts'

/**
 * Minimum number of searched digests for which Redis is asked if this node knows none of them. A conversation
 * needs at least two turns to continue an earlier prompt.
 */
const MIN_SEARCHED = { prompt: 2, session: 1 } as const
/**
 * Clients usually append two turns: the answer, and what follows it. From three unknown turns on, Redis is
 * asked for a longer part of a conversation of which this node knows a part.
 */
const MIN_NEWER = 3
/** Maximum number of digests that are looked up in Redis: those of the latest turns. */
const MAX_DIGESTS = 256

/** A digest and its number. The digest covers user, channel, model and conversation. */
interface SharedDigest {
  readonly digest: Buffer
  readonly value: number
}

const CODEC: Codec<SharedDigest> = {
  encode: ({ digest, value }) => `${value}.${digest.toString('base64url', 0, DIGEST_KEY_BYTES)}`,
  decode: (text) => {
    const [value, digest = ''] = text.split('.')
    return { digest: Buffer.from(digest, 'base64url'), value: Number(value) }
  },
}

/** Digests of several nodes. Each node remembers its own in memory and shares them in Redis, by their marks. */
export class SharedDigests implements DigestStore {
  readonly #local = new LocalDigests()
  readonly #table: SharedTable<SharedDigest>
  readonly #minSearched: number
  readonly #nowMs: () => number
  /** Maximum number of entries, as given in the last call of `remember`. */
  #most = 0

  /** Starts to connect to Redis at once. */
  constructor(kind: keyof typeof MIN_SEARCHED, options: SharedTableOptions) {
    this.#table = new SharedTable(kind, CODEC, options, (change) => this.#onChange(change))
    this.#minSearched = MIN_SEARCHED[kind]
    this.#nowMs = options.nowMs ?? Date.now
  }

  /** Resolves when the first attempt to connect has ended, successful or not. */
  get firstAttempt(): Promise<void> {
    return this.#table.firstAttempt
  }

  find(
    search: DigestSearch,
    isPlausible: (found: FoundDigest) => boolean,
  ): FoundDigest | undefined | Promise<FoundDigest | undefined> {
    const own = this.#local.find(search, isPlausible)
    // Another node may know a longer part of the conversation.
    const newer = Math.min(own?.index ?? search.count, MAX_DIGESTS)
    if (!this.#table.isConnected || newer < (own ? MIN_NEWER : this.#minSearched)) return own
    const names = Array.from({ length: newer }, (_, index) => nameOf(search.mark(index)))
    return this.#table.read(names).then((entries) => this.#firstOf(search, entries, isPlausible) ?? own)
  }

  remember(owner: number, digest: Buffer, value: number, retention: Retention): void {
    const known = this.#knownHere(digest)
    this.#local.remember(owner, digest, value, retention)
    this.#most = retention.most
    const entry = { owner, name: nameOf(digest.readUInt32LE()), value: { digest, value }, retention }
    this.#table.write(entry, known !== undefined && known !== value)
  }

  close(): Promise<void> {
    return this.#table.close()
  }

  /** Applies another node's change of an entry that this node has in memory, for which it does not ask Redis. */
  #onChange(entry: SharedEntry<SharedDigest>): void {
    const known = this.#knownHere(entry.value.digest)
    if (known !== undefined && known !== entry.value.value) this.#learn(0, entry)
  }

  // An entry that is known already keeps its owner.
  #learn(owner: number, { value: { digest, value }, expiresMs }: SharedEntry<SharedDigest>): void {
    const retention = { ms: expiresMs - this.#nowMs(), most: Math.max(1, this.#most) }
    this.#local.remember(owner, digest, value, retention)
  }

  #knownHere(digest: Buffer): number | undefined {
    return this.#local.find(searchForOneDigest(0, digest), () => true)?.value
  }

  #firstOf(
    search: DigestSearch,
    entries: Iterable<SharedEntry<SharedDigest> | undefined>,
    isPlausible: (found: FoundDigest) => boolean,
  ): FoundDigest | undefined {
    let compared = 0
    let index = -1
    for (const entry of entries) {
      index += 1
      if (!entry) continue
      // Another conversation may have the same mark, so the whole digest is compared.
      const { digest, value } = entry.value
      if (matchesDigestAt(search, index, digest) && isPlausible({ index, value })) {
        // Once it is known here, a call that changes it announces the change.
        this.#learn(search.owner, entry)
        return { index, value }
      }
      if (++compared === MAX_COMPUTED_DIGESTS) return undefined
    }
    return undefined
  }
}

const nameOf = (mark: number): string => mark.toString(16)
