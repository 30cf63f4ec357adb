/** Number of bytes of a digest that identify a remembered prompt. */
export const PROMPT_KEY_BYTES = 24

const KEY_WORDS = PROMPT_KEY_BYTES / 4
/** 32-bit words of an entry: its key, its tokens, and when it expires. */
const WORDS = KEY_WORDS + 2
const TOKENS = KEY_WORDS
const EXPIRES = KEY_WORDS + 1
/** Number of entries in which a key may be stored. */
const WAYS = 16
/** Entries for each prompt that may be remembered, so that few are displaced before there are too many. */
const SPARE = 1.5
/** Unit of the expiry. */
const TICK_MS = 100
const MAX_WORD = 0xffff_ffff

/**
 * Numbers of tokens by digest, in a memory of fixed size: 48 bytes for each prompt that may be remembered. A
 * new one displaces the one nearest to its expiry among those in its place.
 */
export class RememberedPrompts {
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
   * Remembers a number of tokens until `expiresMs`, by a monotonic clock that began at 0. `most`: the maximum
   * number of entries; another one than before forgets all.
   */
  put(key: Uint8Array, tokens: number, expiresMs: number, nowMs: number, most: number): void {
    if (most !== this.#most) this.#resize(most)
    if (most === 0 || tokens > MAX_WORD) return
    const place = wordsOf(key)
    const own = this.#find(place)
    const at = own ?? this.#freeEntry(place, nowMs)
    if (this.#expiryAt(at) === 0) this.#size++
    this.#words.set(place, at)
    this.#words[at + TOKENS] = tokens
    this.#words[at + EXPIRES] = Math.max(1, Math.floor(expiresMs / TICK_MS))
  }

  /** The tokens of a key; undefined if it is not remembered. */
  get(key: Uint8Array, nowMs: number): number | undefined {
    if (this.#size === 0) return undefined
    const at = this.#find(wordsOf(key))
    return at === undefined || this.#isExpired(at, nowMs) ? undefined : this.#words[at + TOKENS]
  }

  #resize(most: number): void {
    const places = Math.ceil((most * SPARE) / WAYS)
    this.#words = new Uint32Array(most === 0 ? 0 : places * WAYS * WORDS)
    this.#most = most
    this.#size = 0
  }

  #find(key: Uint32Array): number | undefined {
    const words = this.#words
    const first = this.#placeOf(key)
    for (let at = first; at < first + WAYS * WORDS; at += WORDS) {
      if (words[at] !== key[0] || this.#expiryAt(at) === 0) continue
      let i = 1
      while (i < KEY_WORDS && words[at + i] === key[i]) i++
      if (i === KEY_WORDS) return at
    }
    return undefined
  }

  /** An entry that is empty, expired, or displaced. */
  #freeEntry(key: Uint32Array, nowMs: number): number {
    const first = this.#placeOf(key)
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

  #placeOf(key: Uint32Array): number {
    const places = this.#words.length / (WAYS * WORDS)
    return ((key[0] as number) % places) * WAYS * WORDS
  }

  #expiryAt(at: number): number {
    return this.#words[at + EXPIRES] as number
  }

  #isExpired(at: number, nowMs: number): boolean {
    return this.#expiryAt(at) * TICK_MS <= nowMs
  }
}

// A copy, because words must be aligned.
function wordsOf(key: Uint8Array): Uint32Array {
  return new Uint32Array(Uint8Array.from(key.subarray(0, PROMPT_KEY_BYTES)).buffer)
}
