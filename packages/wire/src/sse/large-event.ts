import { closedJson } from '../json/close-json.ts'
import { JsonOutline } from '../json/json-outline.ts'

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const LINE_END = Buffer.of(LF)
/** Maximum characters kept of a field's name and of an event's name. */
const MAX_FIELD = 16
const MAX_NAME = 256
/** Maximum UTF-8 bytes of one UTF-16 code unit. */
const MAX_UTF8_BYTES = 3

/**
 * Event that is read while it streams through; only its name and an outline of its data are kept. Lines and
 * fields follow the rules of `FrameSplitter` and `dataOf`.
 */
export class LargeEvent {
  readonly #outline = new JsonOutline()
  #dataBytes = 0
  #name = ''
  /** Current line: its length and its field, whose name is known once a colon came. */
  #lineBytes = 0
  #field = ''
  #isInValue = false
  /** Whether the last byte was a CR, to which a following LF would belong. */
  #endedInCr = false

  /** Outline of the data; undefined if even the outline is too long. */
  get data(): string | undefined {
    return this.#outline.text
  }

  /** The data so far, closed as if they ended here; undefined if they cannot be read. */
  get begunData(): string | undefined {
    const { text } = this.#outline
    return text === undefined ? undefined : closedJson(text)
  }

  /** Number of data bytes that the outline leaves out. */
  get elidedBytes(): number {
    return this.#dataBytes - this.#outline.length
  }

  /** Frame with only the event's name, for functions that read the name. */
  get frame(): string {
    return this.#name === '' ? '' : `event:${this.#name}\n\n`
  }

  /** Reads more bytes; returns the offset after the event's end, or −1 if it continues. */
  push(bytes: Buffer): number {
    const { length } = bytes
    let at = this.#endedInCr && bytes[0] === LF ? 1 : 0
    if (length > 0) this.#endedInCr = false
    let lf = bytes.indexOf(LF, at)
    let cr = bytes.indexOf(CR, at)
    while (at < length) {
      if (lf >= 0 && lf < at) lf = bytes.indexOf(LF, at)
      if (cr >= 0 && cr < at) cr = bytes.indexOf(CR, at)
      const end = lf < 0 || cr < 0 ? Math.max(lf, cr) : Math.min(lf, cr)
      this.#take(bytes.subarray(at, end < 0 ? length : end))
      if (end < 0) return -1
      at = end + 1
      if (bytes[end] === CR) {
        if (bytes[at] === LF) at++
        else this.#endedInCr = at === length
      }
      if (this.#lineBytes === 0) return at
      this.#endLine()
    }
    return -1
  }

  #take(part: Buffer): void {
    this.#lineBytes += part.length
    let value = part
    if (!this.#isInValue) {
      const colon = part.indexOf(COLON)
      const end = colon < 0 ? part.length : colon
      this.#field += part.toString('latin1', 0, Math.min(end, MAX_FIELD - this.#field.length))
      if (colon < 0) return
      this.#isInValue = true
      if (this.#field === 'event') this.#name = ''
      value = part.subarray(colon + 1)
    }
    if (this.#field === 'data') {
      this.#outline.push(value)
      this.#dataBytes += value.length
    } else if (this.#field === 'event')
      this.#name += value.toString('latin1', 0, MAX_NAME - this.#name.length)
  }

  #endLine(): void {
    // Several data fields are lines of one text.
    if (this.#field === 'data') this.#outline.push(LINE_END)
    this.#lineBytes = 0
    this.#field = ''
    this.#isInValue = false
  }
}

/** Reports whether a text is longer than this in UTF-8. */
export function isLonger(text: string, bytes: number): boolean {
  return text.length * MAX_UTF8_BYTES > bytes && Buffer.byteLength(text) > bytes
}
