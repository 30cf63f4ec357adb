import { ReceivedMedia } from '../received-media.ts'
import { type FrameText, type FrameTemplate, learnTemplate, type FrameTextReader } from './frame-template.ts'
import type { SharedTemplates } from './shared-templates.ts'
import { frameData, type FrameSplitter, MIN_DATA_FRAME_BYTES } from './frame-splitter.ts'

/**
 * What to do with a frame (an event of a stream with the blank line after it): forward it, drop it, or end
 * the stream.
 */
export type FrameAction = 'forward' | 'swallow' | 'end'

const BYTE_ORDER_MARK = '\ufeff'
/** Maximum size in bytes of frames from which a template is learned. Larger frames are not repeated. */
const MAX_TEMPLATE_BYTES = 16_384

/**
 * Reads the frames of a stream one after another. Only frames that match no template are parsed. Subclasses
 * interpret the frames of one protocol; their base classes decide what happens with a frame.
 */
export abstract class FrameLoop {
  protected readonly frames: FrameSplitter
  /** What to do with the frame that `readFrames` has read last. */
  protected verdict: FrameAction = 'forward'
  protected lastFrameAt = 0
  /** Whether no frame was read yet. The first frame may begin with a byte order mark. */
  protected isFirst = true
  /**
   * Whether a frame with data was read that is more than the beginning of an answer. A frame with only comments
   * or other fields is not an event.
   */
  sawEvent = false
  /** Audio, images and hidden reasoning that have arrived so far. */
  readonly arrived = new ReceivedMedia()
  readonly #templates: KnownFrameTemplates

  /** `shared` contains templates learned from other streams of the same class. */
  constructor(frames: FrameSplitter, shared?: SharedTemplates) {
    this.frames = frames
    this.#templates = new KnownFrameTemplates((data) => this.pieceOf(data), shared)
  }

  /**
   * Returns the text of a frame that contains nothing else that matters. A template is learned from such a
   * frame.
   */
  protected abstract pieceOf(data: string): FrameText | undefined

  /** Reads the text of a frame that matches a template. Returns false if the text is invalid. */
  protected abstract readTemplated(template: FrameTemplate, bytes: Buffer): boolean

  /** Reads a frame that matches no template. */
  protected abstract readFrame(data: string, frame: string): FrameAction

  /**
   * A number that increases with each frame that contains text, so that a template can be learned from that
   * frame.
   */
  protected abstract get progress(): number

  /** Whether the data of a frame mark the end of the stream in this protocol. */
  protected abstract isTerminator(data: string): boolean

  /** Releases the memory of an incomplete frame. */
  release(): void {
    this.frames.takeBuffered()
  }

  /** Forgets the templates, because frames of another kind follow. */
  protected resetTemplates(): void {
    this.#templates.reset()
  }

  /**
   * Adds a chunk. Returns the bytes to read, which begin with a frame; undefined if no frame can be complete
   * yet.
   */
  protected take(chunk: Buffer): Buffer | undefined {
    this.#templates.newBytes()
    return this.frames.take(chunk)
  }

  /**
   * Reads frames from an offset up to the first one that must not be forwarded. Returns the offset after the
   * last frame read.
   */
  protected readFrames(bytes: Buffer, from: number): number {
    let at = from
    this.verdict = 'forward'
    while (at < bytes.length) {
      const known = this.#templates.match(bytes, at)
      if (known && this.readTemplated(known, bytes)) {
        at = known.end
        continue
      }
      const end = this.frames.next(at)
      if (end < 0) break
      this.lastFrameAt = at
      this.verdict = this.#read(bytes.subarray(at, end))
      at = end
      if (this.verdict !== 'forward') break
    }
    return at
  }

  /** Reads the bytes that remain at the end of the stream, if they are a complete frame. */
  protected readRest(): { readonly bytes: Buffer; readonly wasRead: boolean } {
    const { bytes, isWhole } = this.frames.end()
    const data = frameData(bytes.toString())
    // A last frame that has no blank line after it is only read if it is the terminator.
    const wasRead = isWhole || (data !== undefined && this.isTerminator(data))
    this.verdict = wasRead ? this.#read(bytes) : 'forward'
    return { bytes, wasRead }
  }

  #read(frame: Buffer): FrameAction {
    if (frame.length < MIN_DATA_FRAME_BYTES) {
      this.isFirst = false
      return 'forward'
    }
    const text = frame.toString()
    const data = frameData(this.isFirst && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
    this.isFirst = false
    if (data === undefined) return 'forward'
    this.sawEvent ||= !isLeadingEvent(text, data)
    const before = this.progress
    const verdict = this.readFrame(data, text)
    // An error event may contain a text. A template of it would make later streams read the text and miss the error.
    if (verdict === 'forward' && this.progress > before && frame.length <= MAX_TEMPLATE_BYTES)
      this.#templates.learn(frame, data)
    return verdict
  }
}

/** Events that precede an answer, after which it may still turn out to be an error. */
const LEADING_NAME = /^event: ?(?:response\.(?:created|in_progress)|ping)\s*$/m
const LEADING_TYPE = /(?<!\\)"type"\s*:\s*"(?:response\.(?:created|in_progress)|ping)"/
/** Number of characters at the beginning and at the end of an event in which its type is searched. */
const TYPE_CHARACTERS = 512

/** Whether an event says only that an answer has begun, or keeps the connection alive. */
export function isLeadingEvent(frame: string, data: string): boolean {
  return (
    LEADING_NAME.test(frame.slice(0, TYPE_CHARACTERS)) ||
    LEADING_TYPE.test(data.slice(0, TYPE_CHARACTERS)) ||
    LEADING_TYPE.test(data.slice(-TYPE_CHARACTERS))
  )
}

const MAX_TEMPLATES = 4
/**
 * If this many templates in a row are never matched, no more are learned, because the frames of the stream
 * differ too much.
 */
const MAX_FAILED_TEMPLATES = 8

/** The templates of one stream. A frame that matches one of them need not be parsed. */
export class KnownFrameTemplates {
  readonly #read: FrameTextReader
  readonly #templates: FrameTemplate[] = []
  #failedTemplates = 0
  readonly #shared: SharedTemplates | undefined
  /**
   * Whether a part of the response has begun. Only templates learned after that are shared with other
   * streams.
   */
  #isInPart = false

  /** `shared` contains templates of other streams whose frames are read by the same function. */
  constructor(read: FrameTextReader, shared?: SharedTemplates) {
    this.#read = read
    this.#shared = shared
  }

  /** Forgets offsets in the previous chunk, because another chunk follows. */
  newBytes(): void {
    for (const template of this.#templates) template.newBytes()
  }

  /** Returns the template that the frame at `start` matches; undefined if the frame must be parsed. */
  match(bytes: Buffer, start: number): FrameTemplate | undefined {
    for (let i = 0; i < this.#templates.length; i++) {
      const template = this.#templates[i] as FrameTemplate
      if (!template.match(bytes, start)) continue
      this.#failedTemplates = 0
      return template
    }
    if (!this.#isInPart || this.#templates.length > 0) return undefined
    const known = this.#shared?.match(bytes, start)
    if (known) this.#templates.push(known)
    return known
  }

  /** Learns a template from a parsed frame that contains text. */
  learn(frame: Buffer, data: string): void {
    if (this.#failedTemplates === MAX_FAILED_TEMPLATES) return
    const piece = this.#read(data)
    const template = piece && learnTemplate(frame, piece, this.#read)
    this.#failedTemplates++
    if (template) this.#templates.unshift(template)
    if (template && this.#isInPart) this.#shared?.keep(template)
    if (this.#templates.length > MAX_TEMPLATES) this.#templates.pop()
    if (this.#failedTemplates === MAX_FAILED_TEMPLATES) this.#templates.length = 0
  }

  /**
   * Drops the templates of this stream, because frames of another kind follow. Templates that are learned
   * from now on can be shared with other streams.
   */
  reset(): void {
    this.#isInPart = true
    this.#templates.length = 0
    this.#failedTemplates = 0
  }
}
