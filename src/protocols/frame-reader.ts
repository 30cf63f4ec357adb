import type { StreamDecoder } from './codec.ts'
import type { FramePiece, FrameTemplate } from './frame-template.ts'
import { KnownFrames } from './known-frames.ts'
import type { ReplyEvent } from './reply.ts'
import { dataOf, FrameSplitter, MAX_EVENT_BYTES, SHORTEST_DATA } from './sse.ts'
import { StreamedInputs } from './tool-input.ts'

const BYTE_ORDER_MARK = '\ufeff'

/**
 * The half of a stream decoder that knows frames and no protocol: splits, and recognises frames that are like an earlier
 * one but for the text in them, so that they need no parsing. A protocol says what a frame means.
 */
export abstract class FrameReader implements StreamDecoder {
  #events: ReplyEvent[] = []
  /** Nothing that follows is read. */
  protected isOver = false
  readonly #frames: FrameSplitter
  readonly #known = new KnownFrames((data) => this.pieceOf(data))
  readonly #inputs = new StreamedInputs()
  #isFirst = true

  constructor(maxEventBytes = MAX_EVENT_BYTES) {
    this.#frames = new FrameSplitter(maxEventBytes)
  }

  /** Reads a frame that is not like an earlier one. */
  protected abstract read(data: string, frame: string): void

  /** The one text that a frame brings and nothing else; its index is given back with the texts of frames like it. */
  protected abstract pieceOf(data: string): FramePiece | undefined

  /** Reads the text, never empty, of a frame that is like one that `pieceOf` understood. */
  protected abstract readPiece(index: number, text: string): void

  /** Whether these data are the protocol's last word. */
  protected abstract isLastWord(data: string): boolean

  /** The upstream ended its connection, and the stream is not over. */
  protected abstract close(): void

  protected emit(event: ReplyEvent): void {
    switch (event.kind) {
      case 'tool-input':
        return this.#tellInput(event.index, this.#inputs.add(event.index, event.text))
      case 'part-start':
        if (event.part.kind === 'tool-call') this.#inputs.begin(event.index)
        break
      case 'part-end':
        this.#tellInput(event.index, this.#inputs.end(event.index))
        break
      case 'start':
      case 'text':
      case 'thinking':
      case 'proof':
      case 'ping':
      case 'end':
      case 'failure':
    }
    this.#events.push(event)
  }

  #tellInput(index: number, text: string): void {
    if (text !== '') this.#events.push({ kind: 'tool-input', index, text })
  }

  /** The frames to come are of another kind than those before. */
  protected forgetFrames(): void {
    this.#known.forget()
  }

  push(chunk: Buffer): ReplyEvent[] {
    const bytes = this.isOver ? undefined : this.#frames.take(chunk)
    if (bytes) this.#walk(bytes)
    return this.#taken()
  }

  end(): ReplyEvent[] {
    if (this.isOver) return []
    const { bytes, isWhole } = this.#frames.end()
    const data = dataOf(bytes.toString())
    // A last frame without its blank line is only taken where it says the last word.
    if (isWhole || (data !== undefined && this.isLastWord(data))) this.#read(bytes)
    if (!this.isOver) this.close()
    this.isOver = true
    return this.#taken()
  }

  #taken(): ReplyEvent[] {
    const events = this.#events
    if (events.length > 0) this.#events = []
    return events
  }

  #walk(bytes: Buffer): void {
    let at = 0
    this.#known.turn()
    while (at < bytes.length && !this.isOver) {
      const known = this.#known.match(bytes, at)
      if (known && this.#readKnown(known, bytes)) {
        at = known.end
        continue
      }
      const end = this.#frames.next(at)
      if (end < 0) break
      this.#read(bytes.subarray(at, end))
      at = end
    }
    this.#frames.keep(this.isOver ? bytes.length : at)
  }

  /** Reads the text of a frame that is like an earlier one; false where it has none that is valid. */
  #readKnown(known: FrameTemplate, bytes: Buffer): boolean {
    const text = known.textIn(bytes)
    if (text === undefined) return false
    if (text !== '') this.readPiece(known.index, text)
    return true
  }

  #read(frame: Buffer): void {
    if (frame.length < SHORTEST_DATA) {
      this.#isFirst = false
      return
    }
    const text = frame.toString()
    const data = dataOf(this.#isFirst && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
    this.#isFirst = false
    if (data === undefined) return
    const before = this.#events.length
    this.read(data, text)
    if (this.#events.length > before) this.#known.learn(frame, data)
  }
}
