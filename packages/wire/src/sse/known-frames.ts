import { type FrameTemplate, learnTemplate, type PieceReader } from './frame-template.ts'
import type { SharedTemplates } from './shared-templates.ts'

const MAX_TEMPLATES = 4
/**
 * After this many consecutive templates that match nothing, no more are learned: the frames differ too much.
 */
const MAX_FAILED_TEMPLATES = 8

/** Templates of one stream's frames. A frame that matches one need not be parsed. */
export class KnownFrames {
  readonly #read: PieceReader
  readonly #templates: FrameTemplate[] = []
  #failedTemplates = 0
  readonly #shared: SharedTemplates | undefined
  /** Whether a part has begun. Templates of earlier frames are never shared. */
  #isInPart = false

  /** `shared`: templates of other streams whose frames are read by the same `read`. */
  constructor(read: PieceReader, shared?: SharedTemplates) {
    this.#read = read
    this.#shared = shared
  }

  /** Forgets offsets in the previous chunk, because another chunk follows. */
  newBytes(): void {
    for (const template of this.#templates) template.newBytes()
  }

  /** Finds the template that the frame at `start` matches; undefined if the frame must be parsed. */
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

  /** Learns a template from a parsed frame that contained text. */
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
   * Drops the templates of this stream, because frames of another kind follow. From now on its templates may
   * be shared.
   */
  reset(): void {
    this.#isInPart = true
    this.#templates.length = 0
    this.#failedTemplates = 0
  }
}
