/** Number of bytes of a digest that are stored and compared. */
export const DIGEST_KEY_BYTES = 24

const KEY_WORDS = DIGEST_KEY_BYTES / 4
/** Number of 32-bit words in an entry: its key, its value, and its expiry. */
const WORDS = KEY_WORDS + 2
const VALUE = KEY_WORDS
const EXPIRES = KEY_WORDS + 1
/** Number of neighbouring entries among which a key may be stored. */
const WAYS = 16
/**
 * Allocated entries for each digest that may be remembered. With spare entries, few digests are displaced
 * before the maximum is reached.
 */
const SPARE = 1.5
/** Unit of the stored expiry, in milliseconds. */
const TICK_MS = 100
const MAX_WORD = 0xffff_ffff

/** A digest in the table, and the number stored for it. */
export interface DigestEntry {
  readonly key: Buffer
  readonly value: number
}

/**
 * A hash table from digests to numbers, in memory of fixed size: 48 bytes for each digest that may be
 * remembered. If all entries for a new digest are occupied, it displaces the oldest of them.
 */
export class DigestTable {
  #words = new Uint32Array(0)
  #most = 0
  #size = 0
  /** Number of stored entries, including expired ones that were not yet overwritten. */
  get size(): number {
    return this.#size
  }

  /** Bytes of memory that the table uses. */
  get bytes(): number {
    return this.#words.byteLength
  }

  /**
   * Stores a number until `expiresMs`. Times are in milliseconds on a monotonic clock that began at 0. `most`
   * is the maximum number of entries; if it changes, all entries are forgotten.
   */
  put(key: Buffer, value: number, expiresMs: number, nowMs: number, most: number): void {
    if (most !== this.#most) this.#resize(most)
    if (most === 0 || value > MAX_WORD) return
    const at = this.#find(key) ?? this.#freeEntry(key, nowMs)
    if (this.#expiryAt(at) === 0) this.#size++
    for (let i = 0; i < KEY_WORDS; i++) this.#words[at + i] = wordOf(key, i)
    this.#words[at + VALUE] = value
    this.#words[at + EXPIRES] = Math.max(1, Math.floor(expiresMs / TICK_MS))
  }

  /** The number stored for a key; undefined if there is none or it has expired. */
  get(key: Buffer, nowMs: number): number | undefined {
    if (this.#size === 0) return undefined
    const at = this.#find(key)
    return at === undefined || this.#isExpired(at, nowMs) ? undefined : this.#words[at + VALUE]
  }

  /** Whether a key that begins with these 32 bits is stored. */
  hasMark(mark: number, nowMs: number): boolean {
    return this.#nextOf(mark, this.#placeOf(mark), nowMs) !== undefined
  }

  /** All entries whose keys begin with these 32 bits. */
  startingWith(mark: number, nowMs: number): DigestEntry[] {
    const entries: DigestEntry[] = []
    let at = this.#nextOf(mark, this.#placeOf(mark), nowMs)
    for (; at !== undefined; at = this.#nextOf(mark, at + WORDS, nowMs)) {
      const key = Buffer.from(this.#words.slice(at, at + KEY_WORDS).buffer)
      entries.push({ key, value: this.#words[at + VALUE] as number })
    }
    return entries
  }

  /** The position of the next entry whose key begins with these 32 bits, from position `from` on. */
  #nextOf(mark: number, from: number, nowMs: number): number | undefined {
    if (this.#size === 0) return undefined
    const end = this.#placeOf(mark) + WAYS * WORDS
    for (let at = from; at < end; at += WORDS)
      if (this.#words[at] === mark && this.#expiryAt(at) !== 0 && !this.#isExpired(at, nowMs)) return at
    return undefined
  }

  #resize(most: number): void {
    const places = Math.ceil((most * SPARE) / WAYS)
    this.#words = new Uint32Array(most === 0 ? 0 : places * WAYS * WORDS)
    this.#most = most
    this.#size = 0
  }

  #find(key: Buffer): number | undefined {
    const words = this.#words
    const mark = wordOf(key, 0)
    const first = this.#placeOf(mark)
    for (let at = first; at < first + WAYS * WORDS; at += WORDS) {
      if (words[at] !== mark || this.#expiryAt(at) === 0) continue
      let i = 1
      while (i < KEY_WORDS && words[at + i] === wordOf(key, i)) i++
      if (i === KEY_WORDS) return at
    }
    return undefined
  }

  /** The position of an entry that may be overwritten: an empty or expired one, otherwise the oldest. */
  #freeEntry(key: Buffer, nowMs: number): number {
    const first = this.#placeOf(wordOf(key, 0))
    let oldest = first
    for (let at = first; at < first + WAYS * WORDS; at += WORDS) {
      const expiry = this.#expiryAt(at)
      if (expiry !== 0 && this.#isExpired(at, nowMs)) return at
      if (expiry === 0 && this.#size < this.#most) return at
      if (expiry !== 0 && (this.#expiryAt(oldest) === 0 || expiry < this.#expiryAt(oldest))) oldest = at
    }
    // The maximum is reached, but these entries are all empty: forget the next stored entry elsewhere in the
    // table.
    if (this.#expiryAt(oldest) === 0) this.#forgetOneFrom(first)
    return oldest
  }

  #forgetOneFrom(first: number): void {
    const { length } = this.#words
    for (let i = 0; i < length; i += WORDS) {
      const at = (first + i) % length
      if (this.#expiryAt(at) === 0) continue
      this.#words[at + EXPIRES] = 0
      this.#size--
      return
    }
  }

  #placeOf(mark: number): number {
    const places = this.#words.length / (WAYS * WORDS)
    return (mark % places) * WAYS * WORDS
  }

  #expiryAt(at: number): number {
    return this.#words[at + EXPIRES] as number
  }

  #isExpired(at: number, nowMs: number): boolean {
    return this.#expiryAt(at) * TICK_MS <= nowMs
  }
}

function wordOf(key: Buffer, index: number): number {
  return key.readUInt32LE(index * 4)
}
