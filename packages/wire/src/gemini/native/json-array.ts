const CR = 0x0d
const LF = 0x0a
const FIELD = 'data:'

/**
 * Converts a stream of events, while it arrives, to one JSON array whose elements are the data of the events.
 * Chunks may be cut anywhere, even within an event.
 */
export class EventsToJsonArray {
  #hasElements = false
  /** Whether the current event has had a line with data. */
  #hasData = false
  /** Whether the current line contains data and continues in the next chunk. */
  #isInData = false
  /**
   * The beginning of the current line, as long as it is not known which field of an event the line contains.
   */
  #head = ''
  #isAfterCr = false

  /** Converts a chunk of the stream. Returns bytes of the array. */
  push(bytes: Buffer): Buffer {
    const out: Buffer[] = []
    let at = 0
    let lf = nextOf(bytes, LF, 0)
    let cr = nextOf(bytes, CR, 0)
    while (at < bytes.length) {
      if (this.#isAfterCr && bytes[at] === LF) at++
      this.#isAfterCr = false
      // Searched only once they are passed, because a chunk may have very many of one and none of the other.
      if (lf < at) lf = nextOf(bytes, LF, at)
      if (cr < at) cr = nextOf(bytes, CR, at)
      const end = Math.min(lf, cr)
      this.#line(bytes.subarray(at, end), out)
      if (end === bytes.length) break
      this.#endLine(out)
      this.#isAfterCr = bytes[end] === CR
      at = end + 1
    }
    return Buffer.concat(out)
  }

  end(): Buffer {
    return Buffer.from(this.#hasElements ? ']' : '[]')
  }

  #line(bytes: Buffer, out: Buffer[]): void {
    if (this.#isInData) {
      out.push(bytes)
      return
    }
    // One byte more than `data:` has, because a space after the colon does not belong to the value.
    const needed = FIELD.length + 1 - this.#head.length
    this.#head += bytes.toString('latin1', 0, needed)
    if (this.#head.length > FIELD.length) this.#beginData(out)
    if (this.#isInData) out.push(bytes.subarray(Math.min(needed, bytes.length)))
  }

  #beginData(out: Buffer[]): void {
    if (!this.#head.startsWith(FIELD)) return
    const first = this.#head.slice(FIELD.length)
    const separator = this.#hasElements ? ',\r\n' : '['
    out.push(Buffer.from((this.#hasData ? '\n' : separator) + (first === ' ' ? '' : first), 'latin1'))
    this.#isInData = true
    this.#hasData = true
    this.#hasElements = true
  }

  #endLine(out: Buffer[]): void {
    if (this.#head === '' && !this.#isInData) this.#hasData = false
    if (this.#head === FIELD) {
      this.#head += ' '
      this.#beginData(out)
    }
    this.#head = ''
    this.#isInData = false
  }
}

/** Offset of the next such byte; the length of the bytes if there is none. */
function nextOf(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from)
  return at === -1 ? bytes.length : at
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPENING = new Set([0x5b, 0x7b])
const CLOSING = new Set([0x5d, 0x7d])

/** Splits a JSON array of objects into its elements, while it arrives. */
export class JsonArraySplitter {
  #element: Buffer[] = []
  #depth = 0
  #inString = false
  #isEscaped = false

  /** Returns the elements that are completed by these bytes. */
  push(bytes: Buffer): Buffer[] {
    const elements: Buffer[] = []
    let begin = this.#depth > 1 ? 0 : -1
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at] as number
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (byte === BACKSLASH) this.#isEscaped = true
        else if (byte === QUOTE) this.#inString = false
      } else if (byte === QUOTE) this.#inString = true
      else if (OPENING.has(byte)) {
        this.#depth += 1
        if (this.#depth === 2) begin = at
      } else if (CLOSING.has(byte)) {
        this.#depth -= 1
        if (this.#depth !== 1) continue
        elements.push(Buffer.concat([...this.#element, bytes.subarray(begin, at + 1)]))
        this.#element = []
        begin = -1
      }
    }
    if (begin >= 0) this.#element.push(Buffer.from(bytes.subarray(begin)))
    return elements
  }
}
