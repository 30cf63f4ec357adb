import { type AnswerError, WITHOUT_ANSWER } from '../answer-error.ts'
import { AnswerMetadata } from '../answer-metadata.ts'
import type { CacheDiagnosis } from '../cache-diagnosis.ts'
import type { Usage } from '../usage.ts'
import type { ErrorContent } from '../upstream-error.ts'
import { TextBuffer } from '../text-buffer.ts'
import { FrameLoop, type FrameAction } from './frame-loop.ts'
import type { FrameTemplate } from './frame-template.ts'
import type { StatedService } from '../service-tier.ts'
import type { ReportedUsage } from '../reported-usage.ts'
import { FrameSplitter } from './frame-splitter.ts'
import { NO_TOOL_USES, type ReportedToolUses } from '../tool-use.ts'
import type { SharedTemplates } from './shared-templates.ts'
import { closeJson, JsonOutline } from '../json/json-outline.ts'

/** What to do after a chunk of the stream was pushed into the tap. */
export interface TapPushResult {
  /** Bytes to send now, if any; the pushed chunk itself if it is forwarded unchanged. */
  readonly forward: Buffer | undefined
  /**
   * Whether the stream has ended with an end marker or an error. `ending` of `TapEndResult` then contains the
   * marker or error and everything after it.
   */
  readonly terminal: boolean
}

/** Error that the upstream sent as an event of the stream, or for which it ended the answer. */
export interface StreamError extends AnswerError {
  /** Whether generated text was forwarded before the error. */
  readonly afterContent: boolean
}

/** What is known about a stream after the upstream has closed it. */
export interface TapEndResult {
  /**
   * The end marker or error event, and everything after it; empty if there was neither. After the call was
   * charged, these bytes are sent or replaced.
   */
  readonly ending: Buffer
  /** Number of bytes of an incomplete last frame, which are not forwarded. */
  readonly cutBytes: number
  /** Whether the stream ended regularly and without an error. */
  readonly complete: boolean
}

const BYTE_ORDER_MARK = Buffer.from('\ufeff')
/** Maximum number of bytes that are kept of what follows the event that ends the stream. */
const MAX_REST_BYTES = 65_536
/**
 * Maximum size in bytes of an event that is held back until it is complete. A larger event is forwarded as it
 * arrives.
 */
const MAX_HELD_BYTES = 65_536
/** Maximum number of bytes that are held back of an event that begins like an error, and of what follows a failed end. */
const MAX_WHOLE_BYTES = 1_048_576
const HEAD_BYTES = 1_024
const LOOKS_LIKE_ERROR = /(?:^|[\r\n])event: ?error\b|"error"\s*:\s*[^\sn]/

/**
 * Watches a stream that is forwarded without conversion. It decides which bytes are forwarded now, holds back
 * the end of the stream, and collects what is needed to charge the call. The result does not depend on how
 * the stream is cut into chunks. Memory is limited: of an event that arrives in pieces and is too large to be
 * held back, only an outline is kept. A subclass for each protocol interprets the frames.
 */
export abstract class StreamTap extends FrameLoop {
  /** The last valid usage that the stream contained. */
  usage: ReportedUsage | undefined
  /** Service tier and region that the stream states; undefined if it states neither, or only in `usage`. */
  served: StatedService | undefined
  /** What the stream states about the prompt cache; undefined if it states nothing. */
  diagnosis: CacheDiagnosis | undefined
  /** Uses of the provider's tools, for protocols that report them. */
  readonly tools: ReportedToolUses = NO_TOOL_USES
  /** Id, model and finish reasons that the stream states. */
  readonly names = new AnswerMetadata()
  /** Whether the end marker of the stream was read. */
  done = false
  error: StreamError | undefined
  /** The frame of the upstream's error, or the part of it that was not forwarded. */
  errorFrame: Buffer | undefined
  /** Set by `read` with the verdict `swallow`: the frame that is forwarded in place of the swallowed one. */
  protected replacement: Buffer | undefined
  /** Number of events read so far, if the subclass counts them. */
  sentEvents = 0
  /** Number of UTF-8 bytes of generated text that were forwarded. */
  emittedBytes = 0
  /** Number of forwarded frames with generated text, including frames that are too large to be read. */
  contentFrames = 0
  /**
   * Generated texts by their index in the reply. They are kept apart, so that the tokens of each are counted
   * separately.
   */
  readonly #texts = new Map<number, TextBuffer>()
  readonly #ending: Buffer[] = []
  #restBytes = 0
  /** The error for which the answer ended, until the stream ends, because its usage may follow. */
  #failed: StreamError | undefined
  /** The frames from the one with that reason on, up to a limit. Later ones are read for their usage alone. */
  readonly #failedFrames: Buffer[] = []
  #failedBytes = 0
  /** The event that is being forwarded before it is complete, because it is large. */
  #large: LargeEvent | undefined

  /**
   * `frames` limits the size of events for which `needsWholeEvent` returns true. `shared` contains templates
   * that other streams of this class have learned.
   */
  constructor(frames = new FrameSplitter(), shared?: SharedTemplates) {
    super(frames, shared)
  }

  /** Whether the stream contained the reason why the whole response ended. */
  abstract get sawFinish(): boolean

  /** Returns the frame that reports an error to the client at the end of a broken stream. */
  abstract failureFrame(error: ErrorContent): Buffer

  /** Reads a frame that matches no template; calls `emit` for generated text. */
  protected abstract read(data: string, frame: string): FrameAction

  /**
   * Whether clients take an upstream's error frame as the end of the stream. They take a reason that means a
   * failure for a good end.
   */
  get endsWithError(): boolean {
    return this.#failed === undefined
  }

  /** The generated text so far, for counting tokens. A very long text is shortened to its beginning. */
  get text(): string {
    return [...this.#texts.values()].join('\n')
  }

  /** Whether an event was forwarded only in part so far. */
  get isMidEvent(): boolean {
    return this.#large !== undefined
  }

  push(chunk: Buffer): TapPushResult {
    if (this.#isTerminal) {
      this.#hold(chunk, 0)
      return { forward: undefined, terminal: true }
    }
    if (this.#large) return this.#forwardLarge(this.#large, chunk)
    return { forward: this.#process(chunk), terminal: this.#isTerminal }
  }

  end(): TapEndResult {
    const isCut = this.isMidEvent
    const { bytes, wasRead } = this.readRest()
    const held = this.verdict === 'swallow' ? this.#takeReplacement() : bytes
    if (wasRead && held) this.#hold(held, held.length)
    if (this.error && wasRead) this.errorFrame ??= bytes
    this.#endFailed()
    return {
      ending: Buffer.concat(this.#ending),
      cutBytes: wasRead ? 0 : bytes.length,
      complete: this.error === undefined && !isCut && (this.done || this.sawFinish),
    }
  }

  /** Ends the reading. If an event was forwarded only in part, the part that arrived is read. */
  override release(): void {
    const begun = this.#large?.begunData
    if (this.#large && begun !== undefined) this.read(begun, this.#large.frame)
    this.#large = undefined
    super.release()
  }

  /**
   * Returns an event that keeps the connection alive and from which clients learn only that the response is
   * in progress; undefined if the protocol has no such event.
   */
  keepAliveFrame(_isNumbered?: boolean): Buffer | undefined {
    return undefined
  }

  /** Returns the bytes that end a complete stream. They are sent after the call was charged. */
  finalBytes(_charged: Usage): Buffer {
    return Buffer.concat(this.#ending)
  }

  /** Number of bytes of the current event that its outline leaves out. */
  protected get elidedBytes(): number {
    return this.#large?.elidedBytes ?? 0
  }

  /** Number of UTF-8 bytes of the text with this index. */
  protected textBytes(index: number): number {
    return this.#texts.get(index)?.length ?? 0
  }

  /** Adds a piece to the generated text with this index. */
  protected emit(index: number, text: string): void {
    this.emittedBytes += this.#textOf(index).add(text)
  }

  protected get progress(): number {
    return this.emittedBytes
  }

  /**
   * Makes the stream end with an error, because the answer has ended for a reason that means a failure. From
   * the current frame on, nothing is forwarded; frames are read for their usage until the stream ends.
   */
  protected failAtEnd(error: AnswerError): void {
    this.#failed ??= { ...error, afterContent: this.contentFrames > 0 }
    this.resetTemplates()
  }

  /** Reads the end marker, which is an error before the answer has begun. Clients would take the marker for an answer. */
  protected endAtMarker(hasBegun: boolean): FrameAction {
    this.done = true
    if (!hasBegun && this.contentFrames === 0) {
      this.failAtEnd(WITHOUT_ANSWER)
      this.errorFrame = Buffer.alloc(0)
    }
    return 'end'
  }

  protected readFrame(data: string, frame: string): FrameAction {
    const before = this.emittedBytes
    const { progress } = this.arrived
    const read = this.read(data, frame)
    const verdict = this.#failed ? this.#holdFailed(read, frame) : read
    if (
      this.emittedBytes > before ||
      this.arrived.progress > progress ||
      (verdict === 'forward' && isLonger(frame, MAX_HELD_BYTES))
    )
      this.contentFrames++
    return verdict
  }

  /** Reads the text of a frame that matches a template. Returns false if the text is invalid. */
  protected readTemplated(known: FrameTemplate, bytes: Buffer): boolean {
    const { index, from, to, escapes } = known
    const size = to - from
    if (escapes === 0) {
      if (size === 0) return true
      this.emittedBytes += size
      this.#textOf(index).append(bytes, from, to)
    } else if (known.isCopyable(bytes)) {
      this.emittedBytes += this.#textOf(index).addCopied({ bytes, spans: [from, to], size, escapes })
    } else {
      const text = known.textIn(bytes)
      if (text === undefined) return false
      this.emit(index, text)
    }
    this.contentFrames++
    return true
  }

  #holdFailed(verdict: FrameAction, frame: string): FrameAction {
    if (verdict === 'end') this.#endFailed()
    else if (this.#failedBytes < MAX_WHOLE_BYTES) {
      const bytes = Buffer.from(frame)
      this.#failedBytes += bytes.length
      this.#failedFrames.push(bytes)
    }
    return verdict === 'end' ? 'end' : 'swallow'
  }

  #endFailed(): void {
    if (!this.#failed || this.error) return
    this.error = this.#failed
    if (this.#failedFrames.length > 0) this.errorFrame = Buffer.concat(this.#failedFrames)
  }

  get #isTerminal(): boolean {
    return this.done || this.error !== undefined
  }

  /** Reads the frames that are completed by this chunk. Returns the bytes to forward. */
  #process(chunk: Buffer): Buffer | undefined {
    const bytes = this.take(chunk)
    const complete = bytes && this.#readFrames(bytes)
    if (this.frames.heldBytes <= MAX_HELD_BYTES || this.frames.isBufferComplete || this.#mustHold)
      return complete
    const begun = this.#beginLarge()
    return complete ? Buffer.concat([complete, begun]) : begun
  }

  /** Reads the complete frames in `bytes`. Returns the part to forward. */
  #readFrames(bytes: Buffer): Buffer | undefined {
    const kept: Buffer[] = []
    let copyFrom = 0
    let at = 0
    for (;;) {
      at = this.readFrames(bytes, at)
      if (this.verdict === 'forward') break
      const { lastFrameAt } = this
      if (lastFrameAt > copyFrom) kept.push(bytes.subarray(copyFrom, lastFrameAt))
      copyFrom = at
      if (this.verdict === 'swallow') {
        const replacement = this.#takeReplacement()
        if (replacement) kept.push(replacement)
        continue
      }
      if (this.error) this.errorFrame ??= Buffer.from(bytes.subarray(lastFrameAt, at))
      this.#hold(bytes.subarray(lastFrameAt), at - lastFrameAt)
      at = bytes.length
      copyFrom = at
      break
    }
    this.frames.markRead(at)
    if (at > copyFrom) kept.push(copyFrom === 0 && at === bytes.length ? bytes : bytes.subarray(copyFrom, at))
    return kept.length > 1 ? Buffer.concat(kept) : kept[0]
  }

  /**
   * Whether an event must be held back until it is complete, whatever its size. Decided by the first bytes of
   * the event.
   */
  protected needsWholeEvent(_head: string): boolean {
    return false
  }

  get #mustHold(): boolean {
    const { frames } = this
    const head = frames.bufferedHead(HEAD_BYTES).toString('latin1')
    if (this.needsWholeEvent(head)) return true
    return frames.heldBytes <= MAX_WHOLE_BYTES && LOOKS_LIKE_ERROR.test(head)
  }

  /** Begins to forward an event before it is complete. Returns the bytes of it that were held back. */
  #beginLarge(): Buffer {
    const held = this.frames.takeBuffered()
    const isMarked = this.isFirst && held.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    this.#large = new LargeEvent()
    this.#large.push(isMarked ? held.subarray(BYTE_ORDER_MARK.length) : held)
    this.isFirst = false
    this.contentFrames++
    return held
  }

  #forwardLarge(large: LargeEvent, chunk: Buffer): TapPushResult {
    const end = large.push(chunk)
    if (end < 0) return { forward: chunk, terminal: false }
    // The event is not counted again: it was counted when its first bytes were forwarded.
    const verdict = large.data === undefined ? 'forward' : this.read(large.data, large.frame)
    this.#large = undefined
    // If the event is an error, its last bytes are held back. The bytes before them were forwarded already.
    if (verdict === 'end') {
      this.errorFrame = Buffer.from(chunk.subarray(0, end))
      this.#hold(chunk, end)
      return { forward: undefined, terminal: true }
    }
    if (end === chunk.length) return { forward: chunk, terminal: false }
    const rest = chunk.subarray(end)
    const forwarded = this.#process(rest)
    const forward =
      forwarded?.length === rest.length
        ? chunk
        : Buffer.concat([chunk.subarray(0, end), forwarded ?? Buffer.alloc(0)])
    return { forward, terminal: this.#isTerminal }
  }

  #takeReplacement(): Buffer | undefined {
    const { replacement } = this
    this.replacement = undefined
    return replacement
  }

  #textOf(index: number): TextBuffer {
    let text = this.#texts.get(index)
    if (!text) this.#texts.set(index, (text = new TextBuffer()))
    return text
  }

  /** Holds bytes until the stream was charged. The first `size` of them are the event that ends it, which is kept whole. */
  #hold(bytes: Buffer, size: number): void {
    const kept = bytes.subarray(0, size + MAX_REST_BYTES - this.#restBytes)
    if (kept.length === 0) return
    this.#restBytes += kept.length - size
    this.#ending.push(Buffer.from(kept))
  }
}

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const LINE_END = Buffer.of(LF)
/** Maximum number of characters that are kept of a field name, and of an event name. */
const MAX_FIELD = 16
const MAX_NAME = 256
/** Maximum number of UTF-8 bytes of one UTF-16 code unit. */
const MAX_UTF8_BYTES = 3

/**
 * Reads an event while it is being forwarded. Only its name and an outline of its data are kept. Lines and
 * fields are separated by the rules of server-sent events.
 */
export class LargeEvent {
  readonly #outline = new JsonOutline()
  #dataBytes = 0
  #name = ''
  /**
   * Length of the current line in bytes, and the name of its field, which is complete once a colon was read.
   */
  #lineBytes = 0
  #field = ''
  #isInValue = false
  /** Whether the last byte was a CR. If so, an LF at the beginning of the next bytes belongs to it. */
  #endedInCr = false

  /** The outline of the event's data; undefined if even the outline is too long. */
  get data(): string | undefined {
    return this.#outline.text
  }

  /**
   * The outline of the data that arrived so far, with all open brackets and strings closed; undefined if that
   * is not JSON.
   */
  get begunData(): string | undefined {
    const { text } = this.#outline
    return text === undefined ? undefined : closeJson(text)
  }

  /** Number of bytes of the event's data that the outline leaves out. */
  get elidedBytes(): number {
    return this.#dataBytes - this.#outline.length
  }

  /** A frame with the event's name but without data, for functions that need the name. */
  get frame(): string {
    return this.#name === '' ? '' : `event:${this.#name}\n\n`
  }

  /** Reads more bytes of the event. Returns the offset after its end, or −1 if the event continues. */
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
    // If an event has several `data` fields, their values are the lines of one text.
    if (this.#field === 'data') this.#outline.push(LINE_END)
    this.#lineBytes = 0
    this.#field = ''
    this.#isInValue = false
  }
}

/** Whether a text has more than this number of bytes in UTF-8. */
function isLonger(text: string, bytes: number): boolean {
  return text.length * MAX_UTF8_BYTES > bytes && Buffer.byteLength(text) > bytes
}
