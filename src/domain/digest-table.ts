/** Number of bytes by which a digest is identified. */
export const DIGEST_KEY_BYTES = 24

const KEY_WORDS = DIGEST_KEY_BYTES / 4
/** 32-bit words of an entry: its key, its number, and when it expires. */
const WORDS = KEY_WORDS + 2
const VALUE = KEY_WORDS
const EXPIRES = KEY_WORDS + 1
/** Number of entries in which a key may be stored. */
const WAYS = 16
/** Entries for each digest that may be remembered, so that few are displaced before there are too many. */
const SPARE = 1.5
/** Unit of the expiry. */
const TICK_MS = 100
const MAX_WORD = 0xffff_ffff

/** What is remembered of one digest. */
export interface DigestEntry {
  readonly key: Buffer
  readonly value: number
}

/**
 * Numbers by digest, in a memory of fixed size: 48 bytes for each digest that may be remembered. A new one
 * displaces the one that was remembered longest ago among those in its place.
 */
export class DigestTable {
  #words = new Uint32Array(0)
  #most = 0
  #size = 0
  /** Number of entries, including those that have expired and were not displaced yet. */
  get size(): number {
    return this.#size
  }

  /** Bytes of memory in use. */
  get bytes(): number {
    return this.#words.byteLength
  }

  /**
   * Remembers a number until `expiresMs`, by a monotonic clock that began at 0. `most`: the maximum
   * number of entries; another one than before forgets all.
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

  /** The number of a key; undefined if it is not remembered. */
  get(key: Buffer, nowMs: number): number | undefined {
    if (this.#size === 0) return undefined
    const at = this.#find(key)
    return at === undefined || this.#isExpired(at, nowMs) ? undefined : this.#words[at + VALUE]
  }

  /** Whether a key is remembered that begins with these 32 bits. */
  hasMark(mark: number, nowMs: number): boolean {
    return this.#nextOf(mark, this.#placeOf(mark), nowMs) !== undefined
  }

  /** The entries whose keys begin with these 32 bits. */
  startingWith(mark: number, nowMs: number): DigestEntry[] {
    const entries: DigestEntry[] = []
    let at = this.#nextOf(mark, this.#placeOf(mark), nowMs)
    for (; at !== undefined; at = this.#nextOf(mark, at + WORDS, nowMs)) {
      const key = Buffer.from(this.#words.slice(at, at + KEY_WORDS).buffer)
      entries.push({ key, value: this.#words[at + VALUE] as number })
    }
    return entries
  }

  /** The next entry with this mark in its place, from this position on. */
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

  /** An entry that is empty, expired, or displaced. */
  #freeEntry(key: Buffer, nowMs: number): number {
    const first = this.#placeOf(wordOf(key, 0))
    let oldest = first
    for (let at = first; at < first + WAYS * WORDS; at += WORDS) {
      const expiry = this.#expiryAt(at)
      if (expiry !== 0 && this.#isExpired(at, nowMs)) return at
      if (expiry === 0 && this.#size < this.#most) return at
      if (expiry !== 0 && (this.#expiryAt(oldest) === 0 || expiry < this.#expiryAt(oldest))) oldest = at
    }
    // The maximum is reached, and none of the entries here can be replaced: the next one found is displaced.
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
