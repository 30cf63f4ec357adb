import { ArrivedMedia } from '../received-media.ts'
import { type FramePiece, type FrameTemplate, learnTemplate, type PieceReader } from './frame-template.ts'
import type { SharedTemplates } from './shared-templates.ts'
import { dataOf, type FrameSplitter, MIN_DATA_FRAME_BYTES } from './frame-splitter.ts'

/** What to do with a frame. */
export type FrameAction = 'forward' | 'swallow' | 'end'

const BYTE_ORDER_MARK = '\ufeff'
/** Maximum size in bytes of a frame that becomes a template; larger frames do not recur. */
const MAX_TEMPLATE_BYTES = 16_384

/**
 * Reads the frames of a stream in a loop. A frame that matches a template (see `FrameTemplate`) is not
 * parsed. A subclass for each protocol interprets frames; subclasses for a purpose (tap, decoder) act on
 * them.
 */
export abstract class FrameLoop {
  protected readonly frames: FrameSplitter
  /** What to do with the last frame that `readFrames` has read. */
  protected verdict: FrameAction = 'forward'
  protected lastFrameAt = 0
  /** Whether no frame was read yet: the first one may begin with a byte order mark. */
  protected isFirst = true
  /** Whether a frame with data was read. Frames with only comments or other fields are not events. */
  sawEvent = false
  /** Audio, images and hidden reasoning that have arrived so far. */
  readonly arrived = new ArrivedMedia()
  readonly #templates: KnownFrames

  /** `shared`: templates that other streams of the same class have learned. */
  constructor(frames: FrameSplitter, shared?: SharedTemplates) {
    this.frames = frames
    this.#templates = new KnownFrames((data) => this.pieceOf(data), shared)
  }

  /**
   * Returns the text of a frame if it contains nothing else of importance; such a frame becomes a template.
   */
  protected abstract pieceOf(data: string): FramePiece | undefined

  /** Reads the text of a frame that matches a template. Returns false if the text is invalid. */
  protected abstract readTemplated(template: FrameTemplate, bytes: Buffer): boolean

  /** Reads a frame that matches no template. */
  protected abstract readFrame(data: string, frame: string): FrameAction

  /** A value that changes with each frame that contains text. */
  protected abstract get progress(): number

  /** Reports whether this data is the protocol's end marker of a stream. */
  protected abstract isTerminator(data: string): boolean

  /** Releases the buffered bytes of an incomplete frame. */
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
   * Reads frames from an offset on, up to the first one that is not forwarded. Returns the offset after the
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

  /** Reads the remaining bytes at the end of the stream as a frame, if they are one. */
  protected readRest(): { readonly bytes: Buffer; readonly wasRead: boolean } {
    const { bytes, isWhole } = this.frames.end()
    // A last frame without its blank line counts only if it is the end marker, which is short.
    const data = bytes.length > MAX_TEMPLATE_BYTES ? undefined : dataOf(bytes.toString())
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
    const data = dataOf(this.isFirst && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
    this.isFirst = false
    if (data === undefined) return 'forward'
    this.sawEvent = true
    const before = this.progress
    const verdict = this.readFrame(data, text)
    if (this.progress > before && frame.length <= MAX_TEMPLATE_BYTES) this.#templates.learn(frame, data)
    return verdict
  }
}

const MAX_TEMPLATES = 4
/** If this many templates in a row match no later frame, no more are learned: the frames differ too much. */
const MAX_FAILED_TEMPLATES = 8

/** The templates of one stream. A frame that matches one of them need not be parsed. */
export class KnownFrames {
  readonly #read: PieceReader
  readonly #templates: FrameTemplate[] = []
  #failedTemplates = 0
  readonly #shared: SharedTemplates | undefined
  /** Whether a part has begun. Templates from before that are never shared. */
  #isInPart = false

  /** `shared`: templates of other streams whose frames the same `read` can read. */
  constructor(read: PieceReader, shared?: SharedTemplates) {
    this.#read = read
    this.#shared = shared
  }

  /** Forgets the offsets in the previous chunk, because another chunk follows. */
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
   * Forgets the templates of this stream, because frames of another kind follow. From now on, its templates
   * may be shared.
   */
  reset(): void {
    this.#isInPart = true
    this.#templates.length = 0
    this.#failedTemplates = 0
  }
}
