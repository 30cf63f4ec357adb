import type { FrameTemplate } from './frame-template.ts'

const MAX_TEMPLATES = 8

/**
 * Templates that streams of one protocol share with later streams, the most recently used first. They are for
 * frames that are equal in all streams, because they contain neither the response's id nor the model. Several
 * streams may use a template at the same time, because each forgets its positions before it reads a chunk.
 */
export class SharedTemplates {
  readonly #templates: FrameTemplate[] = []

  /** Keeps a template that a stream has learned. */
  keep(template: FrameTemplate): void {
    this.#templates.unshift(template)
    if (this.#templates.length > MAX_TEMPLATES) this.#templates.pop()
  }

  /** Returns the template that the frame at `start` matches; undefined if there is none. */
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
