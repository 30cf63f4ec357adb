import type { Span, TextScanner } from './automaton/text-scanner.ts'

/** Takes the rest of a text as one match, because a search of it would cost too much (`docs/matching.md: Time`). */
export class RestScanner implements TextScanner {
  readonly spans: Span[]
  #span: Span | undefined
  #end: number

  /**
   * @param from Position at which the rest begins.
   * @param spans Matches before it.
   */
  constructor(from: number, spans: Span[]) {
    this.spans = spans
    this.#end = from
  }

  get decided(): number {
    return this.#end
  }

  get needed(): number {
    return this.#end
  }

  scan(text: string, base: number, isEnd: boolean): void {
    const end = base + text.length
    if (!this.#span && end > this.#end) {
      this.#span = { start: this.#end, end, isOpen: true }
      this.spans.push(this.#span)
    }
    this.#end = end
    if (this.#span) this.#span.end = end
    if (isEnd) this.leave()
  }

  fork(): RestScanner {
    return new RestScanner(this.#end, [])
  }

  meets(other: TextScanner): boolean {
    return other instanceof RestScanner
  }

  leave(): void {
    if (this.#span) this.#span.isOpen = false
  }
}
