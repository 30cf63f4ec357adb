const QUOTE = 0x22
const COMMA = 0x2c
const SLASH = 0x2f
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const LETTER_U = 0x75
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Bytes kept of one string, and of the whole text before it counts as full. */
const MAX_STRING_BYTES = 262_144
const FULL_BYTES = 524_288
/** Bytes kept of each string when it is full: keys and short values still matter. */
const SHORT_STRING_BYTES = 64
/** When it is full, containers nested deeper than this are cut after the member that they are at. */
const MAX_FULL_DEPTH = 3
/** Bytes of such a container that are kept all the same: the details of a usage are no longer. */
const SMALL_CONTAINER_BYTES = 128
/** Bytes kept at most; an outline that would be longer is given up. */
const MAX_OUTLINE_BYTES = 1_048_576
/** A longer run of base64 characters is no text: it is a picture, a sound or a document. */
const MAX_RUN = 1_024
const INITIAL_BYTES = 4_096

/** The characters of base64, of both alphabets. */
const BASE64 = new Uint8Array(256)
for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=')
  BASE64[character.charCodeAt(0)] = 1

/**
 * A JSON text without most of what is long in it, made while the text comes, in memory that does not grow
 * with it: base64 and very long strings are cut short, and where there is still too much, what is nested
 * deep. Short members stay, wherever they stand. It is JSON if the text is.
 */
export class JsonOutline {
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
  #length = 0
  #isAbandoned = false
  #depth = 0
  /** The container whose rest is passed over, by its depth; 0 = none. */
  #cutDepth = 0
  /** Where the open containers that may be cut began, by their depth. */
  readonly #starts: number[] = []
  #inString = false
  /** Bytes kept of the string, and base64 characters in a row. */
  #stringBytes = 0
  #run = 0
  /** Bytes of an escape that are to come, and whether they are kept. */
  #escapeLeft = 0
  #isEscapeStart = false
  #keepsEscape = false

  /** The outline of what came so far; undefined where it was given up. */
  get text(): string | undefined {
    return this.#isAbandoned ? undefined : this.#bytes.toString('utf8', 0, this.#length)
  }

  /** Bytes that are kept. */
  get length(): number {
    return this.#length
  }

  push(bytes: Buffer): void {
    const { length } = bytes
    for (let p = 0; p < length && !this.#isAbandoned; p++) {
      // The most of what is large is passed over here.
      if (this.#run > MAX_RUN && this.#inString && this.#escapeLeft === 0)
        while (BASE64[bytes[p] as number] === 1) p++
      if (p === length) return
      const byte = bytes[p] as number
      if (!this.#inString) this.#handleToken(byte)
      else if (this.#escapeLeft > 0) this.#handleEscape(byte)
      else this.#handleCharacter(byte)
    }
  }

  #handleToken(byte: number): void {
    switch (byte) {
      case QUOTE:
        this.#inString = true
        this.#stringBytes = 0
        this.#run = 0
        break
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        this.#depth++
        if (this.#cutDepth === 0) this.#starts[this.#depth] = this.#length
        break
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        if (this.#depth === this.#cutDepth) this.#cutDepth = 0
        this.#depth--
        break
      case COMMA:
        if (this.#mustCut) this.#cutDepth = this.#depth
    }
    this.#keep(byte)
  }

  #handleCharacter(byte: number): void {
    if (byte === QUOTE) {
      this.#inString = false
      this.#keep(byte)
    } else if (byte === BACKSLASH) {
      this.#escapeLeft = 1
      this.#isEscapeStart = true
      this.#keepsEscape = this.#run <= MAX_RUN && this.#hasSpace
      this.#handleEscaped(byte)
    } else {
      this.#run = BASE64[byte] === 1 ? this.#run + 1 : 0
      if (this.#run > MAX_RUN || !this.#hasSpace) return
      this.#stringBytes++
      this.#keep(byte)
    }
  }

  // An escape is kept whole or not at all.
  #handleEscape(byte: number): void {
    // Some servers write the slashes of base64 as escapes.
    if (byte !== SLASH) this.#run = 0
    this.#escapeLeft = this.#isEscapeStart && byte === LETTER_U ? 4 : this.#escapeLeft - 1
    this.#isEscapeStart = false
    this.#handleEscaped(byte)
  }

  #handleEscaped(byte: number): void {
    if (!this.#keepsEscape) return
    this.#stringBytes++
    this.#keep(byte)
  }

  get #mustCut(): boolean {
    if (this.#cutDepth > 0 || this.#depth <= MAX_FULL_DEPTH || this.#length <= FULL_BYTES) return false
    return this.#length - (this.#starts[this.#depth] ?? 0) > SMALL_CONTAINER_BYTES
  }

  get #hasSpace(): boolean {
    return this.#stringBytes < (this.#length > FULL_BYTES ? SHORT_STRING_BYTES : MAX_STRING_BYTES)
  }

  #keep(byte: number): void {
    if (this.#cutDepth > 0) return
    if (this.#length === this.#bytes.length && !this.#grow()) return
    this.#bytes[this.#length++] = byte
  }

  #grow(): boolean {
    if (this.#length === MAX_OUTLINE_BYTES) {
      this.#isAbandoned = true
      this.#bytes = Buffer.alloc(0)
      this.#length = 0
      return false
    }
    const larger = Buffer.allocUnsafeSlow(Math.min(MAX_OUTLINE_BYTES, this.#length * 2))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
    return true
  }
}
