const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Detects the end of a JSON object or array that arrives in pieces. */
export class JsonProgress {
  /** Whether its last bracket has come. */
  isComplete = false
  #depth = 0
  #inString = false
  #isEscaped = false

  /** Reads a piece; linear in the text, whatever its pieces. */
  feed(text: string): void {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (this.#isEscaped) this.#isEscaped = false
      else if (this.#inString) {
        if (code === QUOTE) this.#inString = false
        else if (code === BACKSLASH) this.#isEscaped = true
      } else if (code === QUOTE) this.#inString = true
      else if (code === OPEN_OBJECT || code === OPEN_ARRAY) this.#depth++
      else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) this.isComplete = --this.#depth <= 0
    }
  }
}
