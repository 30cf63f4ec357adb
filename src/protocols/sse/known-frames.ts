import { type FrameTemplate, learnTemplate, type PieceReader } from './frame-template.ts'

const MAX_TEMPLATES = 4
/**
 * So many attempts in a row that helped with no frame, and no more are made: this stream's frames differ too
 * much.
 */
const MAX_FAILED_TEMPLATES = 8

/**
 * The frames of one stream that were read, so that those which are like them but for their text need no
 * reading.
 */
export class KnownFrames {
  readonly #read: PieceReader
  readonly #templates: FrameTemplate[] = []
  #failedTemplates = 0

  constructor(read: PieceReader) {
    this.#read = read
  }

  /** Other bytes come than those of before. */
  newBytes(): void {
    for (const template of this.#templates) template.newBytes()
  }

  /** What the frame that begins at `start` is like but for its text; undefined where it must be read. */
  match(bytes: Buffer, start: number): FrameTemplate | undefined {
    for (let i = 0; i < this.#templates.length; i++) {
      const template = this.#templates[i] as FrameTemplate
      if (!template.match(bytes, start)) continue
      this.#failedTemplates = 0
      return template
    }
    return undefined
  }

  /** Learns from a frame that had to be read, and brought text. */
  learn(frame: Buffer, data: string): void {
    if (this.#failedTemplates === MAX_FAILED_TEMPLATES) return
    const piece = this.#read(data)
    const template = piece && learnTemplate(frame, piece, this.#read)
    this.#failedTemplates++
    if (template) this.#templates.unshift(template)
    if (this.#templates.length > MAX_TEMPLATES) this.#templates.pop()
    if (this.#failedTemplates === MAX_FAILED_TEMPLATES) this.#templates.length = 0
  }

  /** The frames to come are of another kind than those before. */
  reset(): void {
    this.#templates.length = 0
    this.#failedTemplates = 0
  }
}
