const QUOTE = 0x22
const BACKSLASH = 0x5c
const LF = 0x0a
const EMPTY = Buffer.alloc(0)

/**
 * To find an id in a response, this many characters of its end are searched for: the beginnings of ids are
 * too similar.
 */
const TAIL_LENGTH = 24
/** Minimum number of characters of an id's end that are searched for in a response. */
const MIN_TAIL_LENGTH = 8
/** Matches ids that need no escaping in JSON. */
const PLAIN = /^[\w-]+$/

/**
 * An id as the upstream writes it in JSON, without quotes (`from`), and the client's id that replaces it
 * (`to`). The strings are Latin-1, with one character per byte, because writing, searching and comparing
 * short strings is faster than creating buffers.
 */
interface Renaming {
  readonly from: string
  /** The end of `from`, which is searched for in the response. */
  readonly tail: string
  readonly to: string
}

/** Number of quotes around an id: one before it and one after it. */
const QUOTES = 2

/**
 * The result of replacing ids in some bytes: `pieces`, followed by the original bytes from the offset `end`
 * on.
 */
interface RenamedBytes {
  readonly pieces: Buffer[]
  readonly end: number
  /** Offset after the last replaced id. */
  readonly read: number
}

/**
 * Replaces ids in the bytes of responses, if an id is a whole JSON string. All other bytes stay unchanged.
 * Chunks may be cut anywhere: if the end of a chunk may be the beginning of an id, it is held back until the
 * next chunk. If both ids have the same length, the new one is written into the given bytes, because copying
 * them would take most of the time.
 */
export class IdReplacer {
  readonly #renamings: Renaming[] = []
  #held: Buffer = EMPTY
  /** The last byte before the bytes that are held back. */
  #before = 0

  /** Adds an id and its replacement. If the id is already known, its first replacement is kept. */
  add(from: string, to: string): void {
    if (from === '') return
    const text = inJson(from)
    for (const known of this.#renamings) if (known.from === text) return
    this.#renamings.push({ from: text, tail: tailOf(text), to })
  }

  /**
   * Replaces ids in the next bytes. Fewer bytes may be returned than were given, because the end may be held
   * back.
   */
  push(chunk: Buffer): Buffer {
    if (this.#renamings.length === 0 || chunk.length === 0) return chunk
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const { pieces, end, read } = this.#renamed(bytes)
    const keep = bytes.length - beginningAt(bytes, read, this.#renamings)
    const ready = bytes.length - keep
    this.#held = keep === 0 ? EMPTY : Buffer.from(bytes.subarray(ready))
    if (ready > 0) this.#before = bytes[ready - 1] as number
    if (pieces.length === 0) return keep === 0 ? bytes : bytes.subarray(0, ready)
    return Buffer.concat([...pieces, bytes.subarray(end, ready)])
  }

  /** Returns the bytes that are still held back, at the end of the response. */
  rest(): Buffer {
    const held = this.#held
    this.#held = EMPTY
    return held
  }

  /** Replaces ids in the bytes of a complete response. */
  whole(bytes: Buffer): Buffer {
    const only = this.#inPlace
    if (only) {
      this.#renameInPlace(bytes, only)
      return bytes
    }
    const { pieces, end } = this.#renamed(bytes)
    return pieces.length === 0 ? bytes : Buffer.concat([...pieces, bytes.subarray(end)])
  }

  /** Replaces ids in a text such as an error message, in which ids are not in quotes. */
  inProse(bytes: Buffer): Buffer {
    let text = bytes.toString('latin1')
    for (const { from: id, to } of this.#renamings) {
      const parts = text.split(id)
      text = parts.reduce((before, after) => {
        const isWhole = !/[\w-]$/.test(before) && !/^[\w-]/.test(after)
        return before + (isWhole ? to : id) + after
      })
    }
    return Buffer.from(text, 'latin1')
  }

  /**
   * The id that is replaced, if there is only one and its replacement has the same length. This is the usual
   * case.
   */
  get #inPlace(): Renaming | undefined {
    const [only, another] = this.#renamings
    return only && !another && only.from.length === only.to.length ? only : undefined
  }

  /**
   * Replaces ids. A replacement of another length is put into `pieces`; one of the same length is written
   * into `bytes`.
   */
  #renamed(bytes: Buffer): RenamedBytes {
    const only = this.#inPlace
    if (only) return { pieces: [], end: 0, read: this.#renameInPlace(bytes, only) }
    const pieces: Buffer[] = []
    let end = 0
    /** Offset after the last replaced id. */
    let read = 0
    const next = this.#renamings.map((renaming) => positionOf(bytes, renaming, 0))
    for (;;) {
      let found = -1
      for (let i = 0; i < next.length; i++) {
        const renaming = this.#renamings[i] as Renaming
        while ((next[i] as number) >= 0 && !this.#isWhole(bytes, next[i] as number, read))
          next[i] = positionOf(bytes, renaming, (next[i] as number) + 1)
        if ((next[i] as number) >= 0 && (found < 0 || (next[i] as number) < (next[found] as number)))
          found = i
      }
      if (found < 0) return { pieces, end, read }
      const { from, to } = this.#renamings[found] as Renaming
      const at = next[found] as number
      read = at + from.length + QUOTES
      if (from.length === to.length) {
        bytes.write(to, at + 1, 'latin1')
        continue
      }
      pieces.push(bytes.subarray(end, at + 1), Buffer.from(to, 'latin1'))
      end = read - 1
    }
  }

  /** Replaces `only`, the only known id, within `bytes`. Returns the offset after its last occurrence. */
  #renameInPlace(bytes: Buffer, only: Renaming): number {
    let read = 0
    let at = positionOf(bytes, only, 0)
    for (; at >= 0; at = positionOf(bytes, only, Math.max(at + 1, read))) {
      if (!this.#isWhole(bytes, at, read)) continue
      bytes.write(only.to, at + 1, 'latin1')
      read = at + only.from.length + QUOTES
    }
    return read
  }

  /** Whether the quote at `at` begins a string. A quote after a backslash is a character of a string. */
  #isWhole(bytes: Buffer, at: number, from: number): boolean {
    return at >= from && (at === 0 ? this.#before : bytes[at - 1]) !== BACKSLASH
  }
}

/**
 * Returns the end of an id, which is searched for in responses. It begins with a digit if possible, because a
 * search first looks for the first character, and texts contain few digits.
 */
function tailOf(id: string): string {
  const tail = id.slice(-TAIL_LENGTH)
  const digit = tail.search(/\d/)
  return digit > 0 && digit <= tail.length - MIN_TAIL_LENGTH ? tail.slice(digit) : tail
}

function inJson(id: string): string {
  return PLAIN.test(id) ? id : Buffer.from(JSON.stringify(id)).toString('latin1').slice(1, -1)
}

/**
 * Returns the offset of the quote before the next occurrence of an id at or after `start`; -1 if there is
 * none.
 */
function positionOf(bytes: Buffer, { from, tail }: Renaming, start: number): number {
  const before = 1 + from.length - tail.length
  let found = bytes.indexOf(tail, start + before, 'latin1')
  for (; found >= 0; found = bytes.indexOf(tail, found + 1, 'latin1')) {
    const at = found - before
    const end = found + tail.length
    if (bytes[at] !== QUOTE || bytes[end] !== QUOTE) continue
    if (before === 1 || bytes.toString('latin1', at + 1, end) === from) return at
  }
  return -1
}

/**
 * Offset at which an id may begin that is cut off at the end of the bytes; the length of the bytes if there
 * is none. Offsets before `from` are not considered.
 */
function beginningAt(bytes: Buffer, from: number, renamings: readonly Renaming[]): number {
  const { length } = bytes
  if (bytes[length - 1] === LF) return length
  const longest = Math.max(...renamings.map((one) => one.from.length)) + QUOTES - 1
  for (let at = Math.max(from, length - longest); at < length; at++) {
    if (bytes[at] !== QUOTE) continue
    const begun = bytes.toString('latin1', at + 1)
    if (renamings.some(({ from }) => from.startsWith(begun))) return at
  }
  return length
}
