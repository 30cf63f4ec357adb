import { FairShares, type Share } from './fair-shares.ts'

/** Number of bytes of a digest that are stored and compared. */
export const DIGEST_KEY_BYTES = 24

const KEY_WORDS = DIGEST_KEY_BYTES / 4
/** The 32-bit words of an entry after its key. The last three are numbers of other entries; 0 means none. */
const VALUE = KEY_WORDS
const EXPIRES = KEY_WORDS + 1
const OWNER = KEY_WORDS + 2
/** The next entry of the same bucket or, of an entry that is not in use, the next such entry. */
const NEXT = KEY_WORDS + 3
/** The entries of the same owner that were stored before and after this one. */
const OLDER = KEY_WORDS + 4
const NEWER = KEY_WORDS + 5
const WORDS = KEY_WORDS + 6
/** Unit of the stored expiry, in milliseconds. */
const TICK_MS = 100
const MAX_WORD = 0xffff_ffff
/** Maximum number of entries in a bucket. Random digests never reach it. */
const MAX_IN_BUCKET = 64
/** Number of entries of which each new one checks whether they have expired. */
const SWEPT = 4

/** A digest in the table, and the number stored for it. */
interface DigestEntry {
  readonly key: Buffer
  readonly value: number
}

/** The entries of one owner, as a list from the oldest to the newest. */
interface OwnerEntries extends Share {
  oldest: number
  newest: number
}

/**
 * A hash table from digests to numbers, in memory of fixed size: 52 bytes for each digest that may be
 * remembered. If it is full, the oldest digest of one owner gives way, as `FairShares` chooses it.
 */
export class DigestTable {
  #words = new Uint32Array(0)
  /** Number of the first entry in each bucket. */
  #buckets = new Uint32Array(0)
  readonly #owners = new Map<number, OwnerEntries>()
  #shares = new FairShares<OwnerEntries>()
  #most = 0
  #size = 0
  /** Number of entries that were ever in use. */
  #begun = 0
  /** The first entry that was in use and is no more. */
  #free = 0
  /** The entry that was checked last for having expired. */
  #swept = 0

  /** Number of stored entries, including expired ones that were not yet removed. */
  get size(): number {
    return this.#size
  }

  /** Bytes of memory that the table uses. */
  get bytes(): number {
    return this.#words.byteLength + this.#buckets.byteLength
  }

  /**
   * Stores a number until `expiresMs`. Times are in milliseconds on a monotonic clock that began at 0. `most`
   * is the maximum number of entries. A key that is stored already keeps its owner.
   */
  put(owner: number, key: Buffer, value: number, expiresMs: number, nowMs: number, most: number): void {
    if (most !== this.#most) this.#resize(most, nowMs)
    if (most === 0 || value > MAX_WORD) return
    this.#sweep(nowMs)
    const known = this.#find(key)
    const entry = known === 0 ? this.#begin(owner >>> 0, key) : known
    if (known !== 0) this.#unlinkFromOwner(entry)
    this.#linkToOwner(entry)
    this.#set(entry, VALUE, value)
    this.#set(entry, EXPIRES, Math.max(1, Math.floor(expiresMs / TICK_MS)))
  }

  /** The number stored for a key; undefined if there is none or it has expired. */
  get(key: Buffer, nowMs: number): number | undefined {
    const entry = this.#find(key)
    return entry === 0 || this.#isExpired(entry, nowMs) ? undefined : this.#word(entry, VALUE)
  }

  /** Whether a key that begins with these 32 bits is stored. */
  hasMark(mark: number, nowMs: number): boolean {
    for (let entry = this.#firstOf(mark); entry !== 0; entry = this.#word(entry, NEXT))
      if (this.#word(entry, 0) === mark && !this.#isExpired(entry, nowMs)) return true
    return false
  }

  #read(entry: number): DigestEntry {
    const at = entry * WORDS
    const key = Buffer.from(this.#words.slice(at, at + KEY_WORDS).buffer)
    return { key, value: this.#word(entry, VALUE) }
  }

  /** Changes the maximum. The entries that expire last are kept. */
  #resize(most: number, nowMs: number): void {
    const kept = Array.from({ length: this.#begun }, (_, index) => index + 1)
      .filter((entry) => !this.#isExpired(entry, nowMs))
      .map((entry) => {
        const expires = this.#word(entry, EXPIRES)
        return { ...this.#read(entry), expires, owner: this.#word(entry, OWNER) }
      })
      .sort((a, b) => a.expires - b.expires)
    this.#words = new Uint32Array(most === 0 ? 0 : (most + 1) * WORDS)
    this.#buckets = new Uint32Array(most)
    this.#owners.clear()
    this.#shares = new FairShares()
    this.#most = most
    this.#size = this.#begun = this.#free = this.#swept = 0
    for (const { owner, key, value, expires } of kept)
      this.put(owner, key, value, expires * TICK_MS, nowMs, most)
  }

  /** Finds the entry of a key; 0 if there is none. */
  #find(key: Buffer): number {
    const mark = wordOf(key, 0)
    let entry = this.#firstOf(mark)
    for (; entry !== 0; entry = this.#word(entry, NEXT)) {
      let i = 0
      while (i < KEY_WORDS && this.#word(entry, i) === wordOf(key, i)) i++
      if (i === KEY_WORDS) break
    }
    return entry
  }

  /** Begins an entry with this key, which belongs to the owner. */
  #begin(owner: number, key: Buffer): number {
    const mark = wordOf(key, 0)
    this.#limitBucket(owner, mark)
    let owned = this.#owners.get(owner)
    if (this.#size === this.#most) {
      owned ??= { count: 0, place: 0, oldest: 0, newest: 0 }
      this.#remove(this.#shares.giverFor(owned, this.#most).oldest)
    }
    const entry = this.#unused()
    for (let i = 0; i < KEY_WORDS; i++) this.#set(entry, i, wordOf(key, i))
    this.#set(entry, OWNER, owner)
    const bucket = mark % this.#most
    this.#set(entry, NEXT, this.#buckets[bucket] as number)
    this.#buckets[bucket] = entry
    this.#size++
    return entry
  }

  #unused(): number {
    const entry = this.#free
    if (entry === 0) return ++this.#begun
    this.#free = this.#word(entry, NEXT)
    return entry
  }

  /** Removes an entry of a full bucket: the oldest of the owner, or else of all. */
  #limitBucket(owner: number, mark: number): void {
    let count = 0
    let oldest = 0
    let ownOldest = 0
    for (let entry = this.#firstOf(mark); entry !== 0; entry = this.#word(entry, NEXT)) {
      count++
      oldest = entry
      if (this.#word(entry, OWNER) === owner) ownOldest = entry
    }
    if (count >= MAX_IN_BUCKET) this.#remove(ownOldest || oldest)
  }

  #remove(entry: number): void {
    const bucket = this.#word(entry, 0) % this.#most
    let before = 0
    for (let at = this.#buckets[bucket] as number; at !== entry; at = this.#word(at, NEXT)) before = at
    const next = this.#word(entry, NEXT)
    if (before === 0) this.#buckets[bucket] = next
    else this.#set(before, NEXT, next)
    this.#unlinkFromOwner(entry)
    this.#set(entry, EXPIRES, 0)
    this.#set(entry, NEXT, this.#free)
    this.#free = entry
    this.#size--
  }

  #linkToOwner(entry: number): void {
    const owner = this.#word(entry, OWNER)
    let owned = this.#owners.get(owner)
    if (!owned) this.#owners.set(owner, (owned = { count: 0, place: 0, oldest: 0, newest: 0 }))
    this.#set(entry, OLDER, owned.newest)
    this.#set(entry, NEWER, 0)
    if (owned.newest === 0) owned.oldest = entry
    else this.#set(owned.newest, NEWER, entry)
    owned.newest = entry
    this.#shares.add(owned)
  }

  #unlinkFromOwner(entry: number): void {
    const owner = this.#word(entry, OWNER)
    const owned = this.#owners.get(owner) as OwnerEntries
    const [older, newer] = [this.#word(entry, OLDER), this.#word(entry, NEWER)]
    if (older === 0) owned.oldest = newer
    else this.#set(older, NEWER, newer)
    if (newer === 0) owned.newest = older
    else this.#set(newer, OLDER, older)
    this.#shares.remove(owned)
    if (owned.count === 0) this.#owners.delete(owner)
  }

  /** Removes expired entries, a few at a time, so that they make room before others. */
  #sweep(nowMs: number): void {
    for (let i = 0; i < SWEPT && this.#begun > 0; i++) {
      this.#swept = (this.#swept % this.#begun) + 1
      const expires = this.#word(this.#swept, EXPIRES)
      if (expires !== 0 && this.#isExpired(this.#swept, nowMs)) this.#remove(this.#swept)
    }
  }

  #firstOf(mark: number): number {
    return this.#size === 0 ? 0 : (this.#buckets[mark % this.#most] as number)
  }

  #isExpired(entry: number, nowMs: number): boolean {
    return this.#word(entry, EXPIRES) * TICK_MS <= nowMs
  }

  #word(entry: number, index: number): number {
    return this.#words[entry * WORDS + index] as number
  }

  #set(entry: number, index: number, word: number): void {
    this.#words[entry * WORDS + index] = word
  }
}

function wordOf(key: Buffer, index: number): number {
  return key.readUInt32LE(index * 4)
}
