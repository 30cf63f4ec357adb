/** Maximum number of lists and objects, one in the other, that are followed. */
const MAX_NESTING = 1000
/** Values without quotes. */
const BARE = /^(?:-?[0-9][-+.0-9eE]*|true|false|null)$/

type Expected = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end'

/** Follows the grammar of one JSON value, token by token. */
export class JsonGrammar {
  #expected: Expected = 'value'
  /** The lists (`]`) and objects (`}`) that are open. */
  readonly #open: string[] = []
  /** Whether the value is complete. */
  isComplete = false

  /** Takes a bracket, comma or colon; returns false if JSON does not allow it here. */
  mark(mark: string): boolean {
    const expected = this.#expected
    switch (mark) {
      case '{':
      case '[':
        if (!this.#takesValue || this.#open.length === MAX_NESTING) return false
        this.#open.push(mark === '{' ? '}' : ']')
        this.#expected = mark === '{' ? 'key or end' : 'value or end'
        return true
      case '}':
      case ']': {
        const isEnd =
          expected === 'comma or end' || expected === (mark === '}' ? 'key or end' : 'value or end')
        if (!isEnd || this.#open.at(-1) !== mark) return false
        this.#open.pop()
        this.#valueEnded()
        return true
      }
      case ',':
        if (expected !== 'comma or end') return false
        this.#expected = this.#open.at(-1) === '}' ? 'key' : 'value'
        return true
      case ':':
        if (expected !== 'colon') return false
        this.#expected = 'value'
        return true
      default:
        return false
    }
  }

  /** Takes a value without quotes; returns false if it is none, or not allowed here. */
  bare(text: string): boolean {
    if (!this.#takesValue || !BARE.test(text)) return false
    this.#valueEnded()
    return true
  }

  /** Whether a string may begin here: a name or a value. */
  get takesString(): boolean {
    return this.#takesValue || this.#expected === 'key' || this.#expected === 'key or end'
  }

  /** Takes a string that has ended. */
  string(): void {
    if (this.#takesValue) this.#valueEnded()
    else this.#expected = 'colon'
  }

  get #takesValue(): boolean {
    return this.#expected === 'value' || this.#expected === 'value or end'
  }

  #valueEnded(): void {
    this.#expected = 'comma or end'
    if (this.#open.length === 0) this.isComplete = true
  }
}
