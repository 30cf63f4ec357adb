import type { Usage } from '../domain/usage.ts'
import { EmittedText } from './emitted-text.ts'
import type { FramePiece, FrameTemplate } from './frame-template.ts'
import { KnownFrames } from './known-frames.ts'
import { dataOf, FrameSplitter, MAX_EVENT_BYTES, SHORTEST_DATA } from './sse.ts'

/** What to do with the bytes that were pushed. */
export interface TapStep {
  /** To be sent now; undefined where nothing is. The pushed chunk itself where it can go whole. */
  readonly forward: Buffer | undefined
  /** The stream said its last word, or an error: it and what follows are in `ending`. */
  readonly terminal: boolean
}

/** An error that upstream sent as a frame. */
export interface StreamError {
  /** The frame's data, as it came. */
  readonly data: string
  /** Whether generated text was forwarded before it. */
  readonly afterContent: boolean
}

/** How a stream stood when upstream ended. */
export interface TapEnd {
  /** The last word or an error frame, and all after it; empty where upstream sent neither. Sent, or replaced, after settling. */
  readonly ending: Buffer
  /** Bytes of a frame that never became whole; not forwarded. */
  readonly cutBytes: number
  /** The stream said that it was finished, and no error. */
  readonly complete: boolean
}

/** What happens to a frame. */
export type Verdict = 'forward' | 'swallow' | 'end'

const BYTE_ORDER_MARK = '\ufeff'
/** Bytes after the last word that are kept. */
const MAX_ENDING = 65_536

/**
 * Watches a native stream go by: tells which bytes go on now, holds back the end, and gathers what a settlement needs.
 * Forwarded, swallowed, held and cut bytes together are the stream; how the network cut it changes neither them nor the
 * facts. A protocol says what a frame means.
 */
export abstract class StreamTap {
  /** The last valid usage. */
  usage: Usage | undefined
  /** The last word was seen. */
  done = false
  error: StreamError | undefined
  /** UTF-8 bytes of generated text in forwarded frames. */
  emittedBytes = 0
  /** Forwarded frames with generated text. */
  contentFrames = 0
  readonly #frames: FrameSplitter
  readonly #known = new KnownFrames((data) => this.pieceOf(data))
  /** Text by index, so that tokens of one do not join those of another. */
  readonly #texts = new Map<number, EmittedText>()
  readonly #ending: Buffer[] = []
  #endingBytes = 0
  #isFirst = true

  constructor(maxEventBytes = MAX_EVENT_BYTES) {
    this.#frames = new FrameSplitter(maxEventBytes)
  }

  /** Whether a reason was given for the end of the whole answer. */
  abstract get sawFinish(): boolean

  /** Reads a frame that is not like an earlier one, and calls `emit` for what the model wrote. */
  protected abstract read(data: string, frame: string): Verdict

  /** The one piece of text in a frame's data: such frames are recognised from then on and not read. */
  protected abstract pieceOf(data: string): FramePiece | undefined

  /** Whether these data are the protocol's last word. */
  protected abstract isLastWord(data: string): boolean

  /** The generated text so far, one after the other, for counting; of very long text the beginning. */
  get text(): string {
    return [...this.#texts.values()].join('\n')
  }

  /** Throws `upstream_error` where one event is larger than the cap. */
  push(chunk: Buffer): TapStep {
    if (this.#isTerminal) {
      this.#hold(chunk)
      return { forward: undefined, terminal: true }
    }
    const bytes = this.#frames.take(chunk)
    if (!bytes) return { forward: undefined, terminal: false }
    return { forward: this.#walk(bytes), terminal: this.#isTerminal }
  }

  end(): TapEnd {
    const { bytes, isWhole } = this.#frames.end()
    let cutBytes = 0
    const data = dataOf(bytes.toString())
    // A last frame without its blank line is only taken where it says the last word.
    if (isWhole || (data !== undefined && this.isLastWord(data))) {
      if (this.#read(bytes) !== 'swallow') this.#hold(bytes)
    } else {
      cutBytes = bytes.length
    }
    return {
      ending: Buffer.concat(this.#ending),
      cutBytes,
      complete: this.error === undefined && (this.done || this.sawFinish),
    }
  }

  /** Text that the model wrote, as one of those with this index. */
  protected emit(index: number, text: string): void {
    this.emittedBytes += this.#textOf(index).add(text)
  }

  /** The frames to come are of another kind than those before. */
  protected forgetFrames(): void {
    this.#known.forget()
  }

  get #isTerminal(): boolean {
    return this.done || this.error !== undefined
  }

  /** Reads the whole frames in `bytes`; what of them goes on. */
  #walk(bytes: Buffer): Buffer | undefined {
    const kept: Buffer[] = []
    let keptFrom = 0
    let at = 0
    this.#known.turn()
    while (at < bytes.length) {
      const known = this.#known.match(bytes, at)
      if (known && this.#readKnown(known, bytes)) {
        at = known.end
        continue
      }
      const end = this.#frames.next(at)
      if (end < 0) break
      const verdict = this.#read(bytes.subarray(at, end))
      if (verdict !== 'forward') {
        if (at > keptFrom) kept.push(bytes.subarray(keptFrom, at))
        keptFrom = end
      }
      if (verdict === 'end') {
        this.#hold(bytes.subarray(at))
        at = bytes.length
        keptFrom = at
        break
      }
      at = end
    }
    this.#frames.keep(at)
    if (at > keptFrom) kept.push(keptFrom === 0 && at === bytes.length ? bytes : bytes.subarray(keptFrom, at))
    return kept.length > 1 ? Buffer.concat(kept) : kept[0]
  }

  /** Takes the text of a frame that is like an earlier one; false where it has none that is valid. */
  #readKnown(known: FrameTemplate, bytes: Buffer): boolean {
    const { index, from, to } = known
    if (known.escaped) {
      const text = known.textIn(bytes)
      if (text === undefined) return false
      this.emit(index, text)
    } else if (to > from) {
      this.emittedBytes += to - from
      this.#textOf(index).append(bytes, from, to)
    }
    if (to > from) this.contentFrames++
    return true
  }

  #read(frame: Buffer): Verdict {
    if (frame.length < SHORTEST_DATA) {
      this.#isFirst = false
      return 'forward'
    }
    const text = frame.toString()
    const data = dataOf(this.#isFirst && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
    this.#isFirst = false
    if (data === undefined) return 'forward'
    const before = this.emittedBytes
    const verdict = this.read(data, text)
    if (this.emittedBytes > before) {
      this.contentFrames++
      this.#known.learn(frame, data)
    }
    return verdict
  }

  #textOf(index: number): EmittedText {
    let text = this.#texts.get(index)
    if (!text) this.#texts.set(index, (text = new EmittedText()))
    return text
  }

  #hold(bytes: Buffer): void {
    const room = MAX_ENDING - this.#endingBytes
    if (room <= 0) return
    this.#endingBytes += bytes.length
    this.#ending.push(Buffer.from(bytes.subarray(0, room)))
  }
}
