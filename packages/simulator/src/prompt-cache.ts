import { createHash } from 'node:crypto'

const BLOCK = 512
const MAX_PREFIXES = 20_000

/** Cache of prompt prefixes, in blocks of 512 characters (128 tokens). */
export class PromptCache {
  readonly #seen = new Set<string>()

  /** Returns the length of the known prefix, and adds the whole text. */
  remember(model: string, text: string): number {
    let known = 0
    let running = model
    for (let at = 0; at < text.length; at += BLOCK) {
      const block = text.slice(at, at + BLOCK)
      running = createHash('sha1').update(running).update(block).digest('base64')
      if (this.#seen.has(running)) known = at + block.length
      else this.#add(running)
    }
    return known
  }

  #add(prefix: string): void {
    this.#seen.add(prefix)
    if (this.#seen.size <= MAX_PREFIXES) return
    for (const oldest of this.#seen) {
      this.#seen.delete(oldest)
      return
    }
  }
}
