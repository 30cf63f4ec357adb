import { type FrameTemplate, learnTemplate, type PieceReader } from './frame-template.ts'

const MAX_TEMPLATES = 4
/**
 * So many attempts in a row that helped with no frame, and no more are made: this stream's frames differ too
 * much.
 */
const MAX_UNPROVEN = 8

/**
 * The frames of one stream that were read, so that those which are like them but for their text need no
 * reading.
 */
export class KnownFrames {
  readonly #read: PieceReader
  readonly #templates: FrameTemplate[] = []
  #unproven = 0

  constructor(read: PieceReader) {
    this.#read = read
  }

  /** Other bytes come than those of before. */
  turn(): void {
    for (const template of this.#templates) template.turn()
  }

  /** What the frame that begins at `start` is like but for its text; undefined where it must be read. */
  match(bytes: Buffer, start: number): FrameTemplate | undefined {
    for (let i = 0; i < this.#templates.length; i++) {
      const template = this.#templates[i] as FrameTemplate
      if (!template.match(bytes, start)) continue
      this.#unproven = 0
      return template
    }
    return undefined
  }

  /** Learns from a frame that had to be read, and brought text. */
  learn(frame: Buffer, data: string): void {
    if (this.#unproven === MAX_UNPROVEN) return
    const piece = this.#read(data)
    const template = piece && learnTemplate(frame, piece, this.#read)
    this.#unproven++
    if (template) this.#templates.unshift(template)
    if (this.#templates.length > MAX_TEMPLATES) this.#templates.pop()
    if (this.#unproven === MAX_UNPROVEN) this.#templates.length = 0
  }

  /** The frames to come are of another kind than those before. */
  forget(): void {
    this.#templates.length = 0
    this.#unproven = 0
  }
}
