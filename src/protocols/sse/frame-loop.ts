import type { FramePiece, FrameTemplate } from './frame-template.ts'
import { KnownFrames } from './known-frames.ts'
import { dataOf, type FrameSplitter, MIN_DATA_FRAME_BYTES } from './sse.ts'

/** The fate of a frame. */
export type Verdict = 'forward' | 'swallow' | 'end'

const BYTE_ORDER_MARK = '\ufeff'
/** Longer frames are not worth remembering: none is like them. */
const MAX_TEMPLATE_BYTES = 16_384

/**
 * Goes through the frames of a stream and reads those that are not like an earlier one but for the text in
 * them. A protocol says what a frame means, and what watches or converts the stream says what is done with
 * it.
 */
export abstract class FrameLoop {
  protected readonly frames: FrameSplitter
  /**
   * After `readFrames`: what is to be done with the last frame that was read, and where that frame begins.
   */
  protected verdict: Verdict = 'forward'
  protected lastFrameAt = 0
  /** No frame was read yet: the next one may begin with a byte order mark. */
  protected isFirst = true
  /** A frame with data was read: comments, and fields alone, are no event. */
  sawEvent = false
  readonly #templates = new KnownFrames((data) => this.pieceOf(data))

  constructor(frames: FrameSplitter) {
    this.frames = frames
  }

  /**
   * The one text that a frame brings and nothing else: frames like it are recognised from then on and not
   * read.
   */
  protected abstract pieceOf(data: string): FramePiece | undefined

  /** Takes the text of a frame that is like an earlier one; false where it has none that is valid. */
  protected abstract readTemplated(template: FrameTemplate, bytes: Buffer): boolean

  /** Reads a frame that is not like an earlier one. */
  protected abstract readFrame(data: string, frame: string): Verdict

  /** Changes with each frame that brings text. */
  protected abstract get progress(): number

  /** Whether these data are the protocol's last word. */
  protected abstract isTerminator(data: string): boolean

  /** Gives back what is held of a frame that will not become whole. */
  release(): void {
    this.frames.takeHeld()
  }

  /** The frames to come are of another kind than those before. */
  protected resetTemplates(): void {
    this.#templates.reset()
  }

  /**
   * The bytes to read now that this chunk came, which begin with a frame; undefined while none can be whole.
   */
  protected take(chunk: Buffer): Buffer | undefined {
    this.#templates.newBytes()
    return this.frames.take(chunk)
  }

  /**
   * Reads frames from an offset on, up to and including the first that is not to be forwarded; the offset
   * after the last.
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

  /** Reads what is left when the stream ended, where that is a frame. */
  protected readRest(): { readonly bytes: Buffer; readonly wasRead: boolean } {
    const { bytes, isWhole } = this.frames.end()
    // A last frame without its blank line is only taken where it says the last word, which is short.
    const data = bytes.length > MAX_TEMPLATE_BYTES ? undefined : dataOf(bytes.toString())
    const wasRead = isWhole || (data !== undefined && this.isTerminator(data))
    this.verdict = wasRead ? this.#read(bytes) : 'forward'
    return { bytes, wasRead }
  }

  #read(frame: Buffer): Verdict {
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
