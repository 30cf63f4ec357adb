import type { FrameTemplate } from './frame-template.ts'

const MAX_TEMPLATES = 8

/**
 * Templates that streams of one protocol leave to later ones, the latest used first: for frames that are
 * alike in all of them, as they name neither their response nor its model. Streams may use one at the same
 * time, because each drops its positions before it reads a chunk.
 */
export class SharedTemplates {
  readonly #templates: FrameTemplate[] = []

  /** Keeps a template that a stream has learned. */
  keep(template: FrameTemplate): void {
    this.#templates.unshift(template)
    if (this.#templates.length > MAX_TEMPLATES) this.#templates.pop()
  }

  /** Finds the template that the frame at `start` matches. */
  match(bytes: Buffer, start: number): FrameTemplate | undefined {
    for (const [i, template] of this.#templates.entries()) {
      template.newBytes()
      if (!template.match(bytes, start)) continue
      this.#templates.splice(i, 1)
      this.#templates.unshift(template)
      return template
    }
    return undefined
  }
}
