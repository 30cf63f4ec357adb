/**
 * What a part of a text is for the JSON in it. `text`: a part of a string, or of no JSON at all. `structure`: quotes,
 * brackets, commas, colons and the space around them. `bare`: a number, or another value without quotes.
 */
export type JsonPartKind = 'text' | 'structure' | 'bare'

/** A part of a text, from its start to that of the next part. */
export interface JsonPart {
  readonly kind: JsonPartKind
  /** How many strings of JSON, one in the other, the part is in. */
  readonly depth: number
  readonly start: number
  readonly end: number
}

const KINDS: readonly JsonPartKind[] = ['text', 'structure', 'bare']
const NUMBERS: Readonly<Record<JsonPartKind, number>> = { text: 0, structure: 1, bare: 2 }

/** The parts of a text that is read from the beginning to the end. A text without JSON is one part. */
export class JsonParts {
  /** Where each part begins, and its kind and depth in one number. */
  #starts: number[] = [0]
  #whats: number[] = [0]

  /** Whether there is nothing but text. */
  get isPlain(): boolean {
    return this.#starts.length === 1 && this.#whats[0] === 0
  }

  /** Begins a part at this position, which is not before that of the last one. */
  begin(position: number, kind: JsonPartKind, depth: number): void {
    const what = NUMBERS[kind] + KINDS.length * depth
    const last = this.#starts.length - 1
    if (this.#starts[last] === position) this.#whats[last] = what
    else if (this.#whats[last] !== what) {
      this.#starts.push(position)
      this.#whats.push(what)
    }
  }

  /** The part that has this position. */
  at(position: number): JsonPart {
    let low = 0
    let high = this.#starts.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#starts[middle] as number) <= position) low = middle + 1
      else high = middle
    }
    const what = this.#whats[low - 1] ?? 0
    return {
      kind: KINDS[what % KINDS.length] as JsonPartKind,
      depth: Math.floor(what / KINDS.length),
      start: this.#starts[low - 1] ?? 0,
      end: this.#starts[low] ?? Number.POSITIVE_INFINITY,
    }
  }

  /** Forgets the parts before the one that has this position. */
  forget(position: number): void {
    if (this.#starts.length < 64 || (this.#starts[this.#starts.length >> 1] as number) > position) return
    const first = this.#starts.findLastIndex((start) => start <= position)
    if (first <= 0) return
    this.#starts = this.#starts.slice(first)
    this.#whats = this.#whats.slice(first)
  }
}
