import type { FrameTemplate } from './frame-template.ts'

const MAX_TEMPLATES = 8

/**
 * Templates that later streams of the same protocol can use, most recently used first. They are learned only
 * from frames that contain neither the response's id nor the model, because such frames are the same in all
 * streams. Several streams can use a template at the same time, because each stream forgets the template's
 * offsets before it reads a chunk.
 */
export class SharedTemplates {
  readonly #templates: FrameTemplate[] = []

  /** Stores a template that a stream has learned. */
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
