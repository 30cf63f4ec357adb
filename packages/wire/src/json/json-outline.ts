const QUOTE = 0x22
const COMMA = 0x2c
const SLASH = 0x2f
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const LETTER_U = 0x75
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Maximum number of bytes that are kept of one string. The rest is cut. */
const MAX_STRING_BYTES = 262_144
/**
 * Size of an outline in bytes from which on only short beginnings of strings are kept, and deep nesting is
 * cut.
 */
const FULL_BYTES = 524_288
/**
 * Maximum number of bytes that are kept of a string once the outline has 512 KiB (`FULL_BYTES`). Keys and
 * short values can still be read.
 */
const SHORT_STRING_BYTES = 64
/**
 * Depth of nesting down to which objects are kept whole once the outline has 512 KiB (`FULL_BYTES`). Deeper
 * ones end after their current member.
 */
const MAX_FULL_DEPTH = 3
/**
 * Containers up to this size in bytes are kept completely even if the outline has more than 512 KiB
 * (`FULL_BYTES`). The details of a usage are smaller.
 */
const SMALL_CONTAINER_BYTES = 128
/** Maximum size of an outline in bytes. A larger outline is discarded. */
const MAX_OUTLINE_BYTES = 1_048_576
/**
 * Maximum length of a sequence of base64 characters that is treated as text. A longer one is treated as
 * media.
 */
const MAX_RUN = 1_024
const INITIAL_BYTES = 4_096

/** Which bytes are characters of one of the two base64 alphabets. */
const BASE64 = new Uint8Array(256)
for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=')
  BASE64[character.charCodeAt(0)] = 1

/**
 * A shortened copy of a JSON text, built while the text streams. Its memory is limited: base64 and very long
 * strings are cut, and from 512 KiB on also deep nesting. Short members are kept everywhere. If the text is
 * valid JSON, so is the outline.
 */
export class JsonOutline {
  readonly #listDepth: number
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
  #length = 0
  #isAbandoned = false
  #depth = 0
  /** Depth of the container whose remaining members are skipped; 0 if there is none. */
  #cutDepth = 0
  /** Offsets in the outline at which the open containers begin, by depth. */
  readonly #starts: number[] = []
  #inString = false
  /**
   * Number of bytes of the current string that were kept, and number of base64 characters up to the current
   * one without another character between them.
   */
  #stringBytes = 0
  #run = 0
  /**
   * Number of bytes of the current escape sequence that have not arrived yet; whether its next byte is the
   * first one after the backslash; and whether the sequence is kept.
   */
  #escapeLeft = 0
  #isEscapeStart = false
  #keepsEscape = false

  /** `listDepth`: the depth down to which lists are kept whole, like objects down to `MAX_FULL_DEPTH`. */
  constructor(listDepth = MAX_FULL_DEPTH) {
    this.#listDepth = listDepth
  }

  /** The outline so far; undefined if it was discarded because it became too large. */
  get text(): string | undefined {
    return this.#isAbandoned ? undefined : this.#bytes.toString('utf8', 0, this.#length)
  }

  /** Number of bytes in the outline so far. */
  get length(): number {
    return this.#length
  }

  push(bytes: Buffer): void {
    const { length } = bytes
    for (let p = 0; p < length && !this.#isAbandoned; p++) {
      // Fast path: skips most of a large base64 value at once.
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

  // An escape sequence is kept completely or not at all.
  #handleEscape(byte: number): void {
    // Some servers escape slashes in base64, so an escaped slash does not end a sequence of base64
    // characters.
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
    if (this.#cutDepth > 0 || this.#length <= FULL_BYTES) return false
    const start = this.#starts[this.#depth] ?? 0
    const fullDepth = this.#bytes[start] === OPEN_ARRAY ? this.#listDepth : MAX_FULL_DEPTH
    return this.#depth > fullDepth && this.#length - start > SMALL_CONTAINER_BYTES
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

/**
 * Texts that may complete a truncated JSON text before its brackets are closed: nothing, a missing value, or
 * a missing colon and value. They are tried in this order.
 */
const COMPLETIONS = ['', 'null', ':null'] as const

/** Matches if a text begins with a complete escape sequence. */
const WHOLE_ESCAPE = /^\\(?:u[\da-f]{4}|[^u])/i

/**
 * Completes a truncated JSON text by closing its open strings and brackets. Returns undefined if the result
 * is not JSON.
 */
export function closeJson(beginning: string): string | undefined {
  const open: string[] = []
  let inString = false
  let escapeAt = -1
  for (let at = 0; at < beginning.length; at++) {
    const character = beginning[at]
    if (inString) {
      if (character === '\\') {
        escapeAt = at
        at += beginning[at + 1] === 'u' ? 5 : 1
      } else if (character === '"') inString = false
    } else if (character === '"') inString = true
    else if (character === '{') open.push('}')
    else if (character === '[') open.push(']')
    else if (character === '}' || character === ']') open.pop()
  }
  // An incomplete escape sequence at the end is left out.
  const isCut = inString && escapeAt >= 0 && !WHOLE_ESCAPE.test(beginning.slice(escapeAt))
  const whole = isCut ? beginning.slice(0, escapeAt) : beginning
  const text = inString ? `${whole}"` : whole.replace(/,\s*$/, '')
  const brackets = open.toReversed().join('')
  return COMPLETIONS.map((completion) => text + completion + brackets).find(isJson)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
