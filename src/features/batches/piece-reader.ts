import { GatewayError } from '../../errors.ts'

const NO_BYTES = Buffer.alloc(0)
const NEWLINE = 0x0a

/** One line, or one element of a list. `bytes` is undefined if it is larger than the maximum. */
export interface RawLine {
  /** Position in the input, from 1; empty lines are counted. */
  readonly line: number
  readonly bytes: Buffer | undefined
}

/** Reads a content that arrives in pieces of any size, without having more than a piece and what is read in memory. */
export class PieceReader {
  readonly #pieces: AsyncIterator<Buffer>
  #rest: Buffer = NO_BYTES

  constructor(pieces: AsyncIterable<Buffer>) {
    this.#pieces = pieces[Symbol.asyncIterator]()
  }

  /** Passes over the empty lines at the beginning of what is in memory, and returns their number. */
  skipBlankLines(): number {
    let lines = 0
    let end = 0
    for (let at = 0; at < this.#rest.length; at += 1) {
      const byte = this.#rest[at] as number
      if (!isSpace(byte)) break
      if (byte !== NEWLINE) continue
      lines += 1
      end = at + 1
    }
    this.#rest = this.#rest.subarray(end)
    return lines
  }

  /** Reads the next line without its end; undefined at the end of the content. */
  async line(maxBytes: number): Promise<{ readonly bytes: Buffer | undefined } | undefined> {
    const found = new Collector(maxBytes)
    let isEmpty = true
    for (;;) {
      const at = this.#rest.indexOf(NEWLINE)
      const piece = at < 0 ? this.#rest : this.#rest.subarray(0, at)
      if (this.#rest.length > 0) isEmpty = false
      found.add(piece)
      if (at >= 0) {
        this.#rest = this.#rest.subarray(at + 1)
        return { bytes: found.bytes() }
      }
      if (!(await this.#next())) return isEmpty ? undefined : { bytes: found.bytes() }
    }
  }

  /** Reads this number of bytes. Rejects if the content ends before. */
  async exactly(length: number): Promise<Buffer> {
    const found: Buffer[] = []
    for (let missing = length; missing > 0; ) {
      if (this.#rest.length === 0 && !(await this.#next()))
        throw new Error('a stored content ended too early')
      const piece = this.#rest.subarray(0, missing)
      this.#rest = this.#rest.subarray(piece.length)
      missing -= piece.length
      found.push(piece)
    }
    return Buffer.concat(found)
  }

  /** Passes over this number of bytes. Rejects if the content ends before. */
  async skip(length: number): Promise<void> {
    for (let missing = length; missing > 0; ) {
      if (this.#rest.length === 0 && !(await this.#next()))
        throw new Error('a stored content ended too early')
      const passed = Math.min(missing, this.#rest.length)
      this.#rest = this.#rest.subarray(passed)
      missing -= passed
    }
  }

  /** Ends reading before the end of the content. */
  async close(): Promise<void> {
    await this.#pieces.return?.()
  }

  async #next(): Promise<boolean> {
    const { done, value } = await this.#pieces.next()
    this.#rest = done ? NO_BYTES : value
    return !done
  }
}

/** Collects the bytes of a line up to a maximum. */
class Collector {
  readonly #maxBytes: number
  #found: Buffer[] = []
  #length = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  add(piece: Buffer): void {
    this.#length += piece.length
    if (this.#length > this.#maxBytes) this.#found = []
    else if (piece.length > 0) this.#found.push(piece)
  }

  bytes(): Buffer | undefined {
    return this.#length > this.#maxBytes ? undefined : Buffer.concat(this.#found)
  }
}

/** The lines of a content that are not empty. */
export async function* linesOf(
  pieces: AsyncIterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<RawLine, void, undefined> {
  const reader = new PieceReader(pieces)
  for (let line = 1; ; line += 1) {
    // A line takes far longer to read than to pass over, and a file may have as many empty ones as it has bytes.
    line += reader.skipBlankLines()
    const found = await reader.line(maxBytes)
    if (!found) return
    if (found.bytes && isBlank(found.bytes)) continue
    yield { line, bytes: found.bytes }
  }
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every(isSpace)
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === NEWLINE || byte === 0x0d
}

const [QUOTE, BACKSLASH, COMMA, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x22, 0x5c, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d,
]
const BEGINNING = Buffer.from('{"requests":[')
const ENDING = Buffer.from('}')

/** The elements of `{"requests": […]}`. Throws `invalid_request` if the content is something else. What the elements are is not checked. */
export async function* requestsOf(
  pieces: AsyncIterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<RawLine, void, undefined> {
  let state = 'begin' as 'begin' | 'first' | 'element' | 'within' | 'after'
  let matched = 0
  let line = 0
  let depth = 0
  let isString = false
  let isEscaped = false
  let found = new Collector(maxBytes)
  for await (const piece of pieces) {
    let start = 0
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at] as number
      if (state === 'within') {
        if (isString) {
          if (isEscaped) isEscaped = false
          else if (byte === BACKSLASH) isEscaped = true
          else if (byte === QUOTE) isString = false
        } else if (byte === QUOTE) isString = true
        else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth += 1
        else if (depth > 0 && (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY)) depth -= 1
        else if (depth === 0 && (byte === COMMA || byte === CLOSE_ARRAY)) {
          found.add(piece.subarray(start, at))
          yield { line, bytes: found.bytes() }
          state = byte === COMMA ? 'element' : 'after'
          matched = 0
        }
        continue
      }
      const isInName = state === 'begin' && matched > 1 && matched < 10
      if (isSpace(byte) && !isInName) continue
      if (state === 'begin' || state === 'after') {
        const expected = state === 'begin' ? BEGINNING : ENDING
        if (byte !== expected[matched]) throw noRequests()
        matched += 1
        if (state === 'begin' && matched === expected.length) state = 'first'
        continue
      }
      if (byte === CLOSE_ARRAY && state === 'first') {
        state = 'after'
        matched = 0
        continue
      }
      state = 'within'
      line += 1
      depth = 0
      isString = false
      found = new Collector(maxBytes)
      start = at
      at -= 1
    }
    if (state === 'within') found.add(piece.subarray(start))
  }
  if (state !== 'after' || matched !== ENDING.length) throw noRequests()
}

function noRequests(): GatewayError {
  return new GatewayError('invalid_request', 'expected a JSON object with the list "requests" alone')
}
