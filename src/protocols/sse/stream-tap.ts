import type { Usage } from '../../domain/usage.ts'
import { EmittedText } from '../emitted-text.ts'
import { FrameLoop, type Verdict } from './frame-loop.ts'
import type { FrameTemplate } from './frame-template.ts'
import { LargeEvent } from './large-event.ts'
import type { ReportedUsage } from '../reported-usage.ts'
import { FrameSplitter } from './sse.ts'

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
  /**
   * The last word or an error frame, and all after it; empty where upstream sent neither. Sent, or replaced,
   * after settling.
   */
  readonly ending: Buffer
  /** Bytes of a frame that never became whole; not forwarded. */
  readonly cutBytes: number
  /** The stream said that it was finished, and no error. */
  readonly complete: boolean
}

const BYTE_ORDER_MARK = Buffer.from('\ufeff')
/** Bytes after the last word that are kept. */
const MAX_ENDING_BYTES = 65_536
/** Bytes of an event that wait for its end. A larger one goes on as it comes. */
const MAX_HELD_BYTES = 65_536
/** The same for an error, which must be redacted: its beginning shows that it is one. */
const MAX_ERROR_BYTES = 1_048_576
const ERROR_HEAD_BYTES = 1_024
/** Bytes of a UTF-16 code unit in UTF-8. */
const MAX_UTF8_BYTES = 3
const LOOKS_LIKE_ERROR = /(?:^|[\r\n])event: ?error\b|"error"\s*:\s*[^\sn]/

/**
 * Watches a native stream go by: tells which bytes go on now, holds back the end, and gathers what a
 * settlement needs. Forwarded, swallowed, held and cut bytes together are the stream; how the network cut it
 * changes neither them nor the facts. What is kept of an event does not grow with it: of a large one, most of
 * what is long in it is not read. A protocol says what a frame means.
 */
export abstract class StreamTap extends FrameLoop {
  /** The last valid usage. */
  usage: ReportedUsage | undefined
  /** The last word was seen. */
  done = false
  error: StreamError | undefined
  /** The error's frame as it came, or as much of it as was not forwarded. */
  errorFrame: Buffer | undefined
  /** UTF-8 bytes of generated text in forwarded frames. */
  emittedBytes = 0
  /** Forwarded frames with generated text, or so large that they bring more than text. */
  contentFrames = 0
  /** Text by index, so that tokens of one do not join those of another. */
  readonly #texts = new Map<number, EmittedText>()
  readonly #ending: Buffer[] = []
  #endingBytes = 0
  /** The event that goes on before it is whole. */
  #large: LargeEvent | undefined

  constructor() {
    super(new FrameSplitter())
  }

  /** Whether a reason was given for the end of the whole answer. */
  abstract get sawFinish(): boolean

  /** Reads a frame that is not like an earlier one, and calls `emit` for what the model wrote. */
  protected abstract read(data: string, frame: string): Verdict

  /** The generated text so far, one after the other, for counting; of very long text the beginning. */
  get text(): string {
    return [...this.#texts.values()].join('\n')
  }

  /** A part of an event was forwarded, and its end is to come. */
  get isMidEvent(): boolean {
    return this.#large !== undefined
  }

  push(chunk: Buffer): TapStep {
    if (this.#isTerminal) {
      this.#hold(chunk)
      return { forward: undefined, terminal: true }
    }
    if (this.#large) return this.#forwardLarge(this.#large, chunk)
    return { forward: this.#process(chunk), terminal: this.#isTerminal }
  }

  end(): TapEnd {
    const isCut = this.isMidEvent
    const { bytes, wasRead } = this.readRest()
    if (wasRead && this.verdict !== 'swallow') this.#hold(bytes)
    if (this.error && wasRead) this.errorFrame ??= bytes
    return {
      ending: Buffer.concat(this.#ending),
      cutBytes: wasRead ? 0 : bytes.length,
      complete: this.error === undefined && !isCut && (this.done || this.sawFinish),
    }
  }

  /** The bytes that end a complete stream, to be sent once it is charged. */
  finalBytes(_charged: Usage): Buffer {
    return Buffer.concat(this.#ending)
  }

  /** Text that the model wrote, as one of those with this index. */
  protected emit(index: number, text: string): void {
    this.emittedBytes += this.#textOf(index).add(text)
  }

  protected get progress(): number {
    return this.emittedBytes
  }

  protected readFrame(data: string, frame: string): Verdict {
    const before = this.emittedBytes
    const verdict = this.read(data, frame)
    if (this.emittedBytes > before || (verdict === 'forward' && isLarge(frame))) this.contentFrames++
    return verdict
  }

  /** Takes the text of a frame that is like an earlier one; false where it has none that is valid. */
  protected readTemplated(known: FrameTemplate, bytes: Buffer): boolean {
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

  get #isTerminal(): boolean {
    return this.done || this.error !== undefined
  }

  /** Reads what this chunk makes whole; what goes on now. */
  #process(chunk: Buffer): Buffer | undefined {
    const bytes = this.take(chunk)
    const whole = bytes && this.#readFrames(bytes)
    if (this.frames.heldBytes <= MAX_HELD_BYTES || this.frames.isHeldComplete || this.#mayBeError) return whole
    const begun = this.#beginLarge()
    return whole ? Buffer.concat([whole, begun]) : begun
  }

  /** Reads the whole frames in `bytes`; what of them goes on. */
  #readFrames(bytes: Buffer): Buffer | undefined {
    const kept: Buffer[] = []
    let keptFrom = 0
    let at = 0
    for (;;) {
      at = this.readFrames(bytes, at)
      if (this.verdict === 'forward') break
      const { lastFrameAt } = this
      if (lastFrameAt > keptFrom) kept.push(bytes.subarray(keptFrom, lastFrameAt))
      keptFrom = at
      if (this.verdict === 'swallow') continue
      if (this.error) this.errorFrame = Buffer.from(bytes.subarray(lastFrameAt, at))
      this.#hold(bytes.subarray(lastFrameAt))
      at = bytes.length
      keptFrom = at
      break
    }
    this.frames.markRead(at)
    if (at > keptFrom) kept.push(keptFrom === 0 && at === bytes.length ? bytes : bytes.subarray(keptFrom, at))
    return kept.length > 1 ? Buffer.concat(kept) : kept[0]
  }

  get #mayBeError(): boolean {
    const { frames } = this
    return (
      frames.heldBytes <= MAX_ERROR_BYTES && LOOKS_LIKE_ERROR.test(frames.heldHead(ERROR_HEAD_BYTES).toString('latin1'))
    )
  }

  /** From here on the event goes on as it comes; returns what was held of it. */
  #beginLarge(): Buffer {
    const held = this.frames.takeHeld()
    const isMarked = this.isFirst && held.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    this.#large = new LargeEvent()
    this.#large.push(isMarked ? held.subarray(BYTE_ORDER_MARK.length) : held)
    this.isFirst = false
    this.contentFrames++
    return held
  }

  #forwardLarge(large: LargeEvent, chunk: Buffer): TapStep {
    const end = large.push(chunk)
    if (end < 0) return { forward: chunk, terminal: false }
    this.#large = undefined
    // It was counted when it began to go on.
    const verdict = large.data === undefined ? 'forward' : this.read(large.data, large.frame)
    // Too late to hold back more of an error than its last bytes; nothing else that is so large is held back.
    if (verdict === 'end') {
      this.errorFrame = Buffer.from(chunk.subarray(0, end))
      this.#hold(chunk)
      return { forward: undefined, terminal: true }
    }
    if (end === chunk.length) return { forward: chunk, terminal: false }
    const rest = chunk.subarray(end)
    const goesOn = this.#process(rest)
    const forward =
      goesOn?.length === rest.length
        ? chunk
        : Buffer.concat([chunk.subarray(0, end), goesOn ?? Buffer.alloc(0)])
    return { forward, terminal: this.#isTerminal }
  }

  #textOf(index: number): EmittedText {
    let text = this.#texts.get(index)
    if (!text) this.#texts.set(index, (text = new EmittedText()))
    return text
  }

  #hold(bytes: Buffer): void {
    const room = MAX_ENDING_BYTES - this.#endingBytes
    if (room <= 0) return
    this.#endingBytes += bytes.length
    this.#ending.push(Buffer.from(bytes.subarray(0, room)))
  }
}

/** Whether a frame goes on before it is whole, where the network brings it in parts. */
function isLarge(frame: string): boolean {
  return frame.length * MAX_UTF8_BYTES > MAX_HELD_BYTES && Buffer.byteLength(frame) > MAX_HELD_BYTES
}
