/** Spellings of an empty input that servers use; an empty JSON string is one. */
const EMPTY_INPUTS: ReadonlySet<string> = new Set(['', 'null', '""'])
/**
 * Beginning of a text that may still turn out to be empty, and is short enough to be tested with each piece.
 */
const MAY_BE_EMPTY = /^\s{0,16}(?:n(?:u(?:l(?:l\s{0,16})?)?)?|"(?:"\s{0,16})?)?$/

/** Returns the JSON text of a tool's input as it came; `{}` if it is empty. */
export function inputOrEmpty(input: string): string {
  // Nearly all inputs are objects, which can be long and need no further check.
  return !input.startsWith('{') && EMPTY_INPUTS.has(input.trim()) ? '{}' : input
}

/** Returns a tool's input if it is a JSON object, trimmed; undefined for anything else. */
export function inputObject(input: string): string | undefined {
  const text = inputOrEmpty(input).trim()
  if (!text.startsWith('{')) return undefined
  try {
    JSON.parse(text)
    return text
  } catch {
    return undefined
  }
}

/**
 * Inputs of the tools in one stream, passed on as they come. An input that may turn out to be `null` or
 * another empty spelling is held back until that is certain.
 */
export class StreamedInputs {
  /** Text that is held back, by part; parts with a proper input are not listed. */
  readonly #pending = new Map<number, string>()

  begin(part: number): void {
    this.#pending.set(part, '')
  }

  /** Whether all that comes of this part is passed on. */
  passes(part: number): boolean {
    return !this.#pending.has(part)
  }

  /** Adds a piece; returns the text that can be passed on. */
  add(part: number, piece: string): string {
    const pending = this.#pending.get(part)
    if (pending === undefined) return piece
    const text = pending + piece
    if (MAY_BE_EMPTY.test(text)) {
      this.#pending.set(part, text)
      return ''
    }
    this.#pending.delete(part)
    return text
  }

  /** Ends an input; returns the text that was held back, unless it is empty. */
  end(part: number): string {
    const pending = this.#pending.get(part) ?? ''
    this.#pending.delete(part)
    return inputOrEmpty(pending) === pending ? pending : ''
  }
}
