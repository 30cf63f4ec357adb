/** Spellings that servers have for no input at all; an empty JSON string is one. */
const EMPTY_INPUTS: ReadonlySet<string> = new Set(['', 'null', '""'])
/** Text that may still turn out to be no input, and is short enough to be read again with each piece. */
const MAY_BE_EMPTY = /^\s{0,16}(?:n(?:u(?:l(?:l\s{0,16})?)?)?|"(?:"\s{0,16})?)?$/

/** The JSON text of a tool's input as it came; `{}` where it is nothing. */
export function inputOrEmpty(input: string): string {
  // Nearly all are objects; they can be long, and need no look at the rest.
  return !input.startsWith('{') && EMPTY_INPUTS.has(input.trim()) ? '{}' : input
}

/**
 * The text of a tool's input that is a JSON object, without the white space around it; undefined for anything
 * else.
 */
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
 * The inputs of tools in one stream. They are told as they come, but for one that may be `null` in the end,
 * or what else means nothing: it is held back until that is known.
 */
export class StreamedInputs {
  /** By part; a part whose input is known to be something else is not here. */
  readonly #pending = new Map<number, string>()

  begin(part: number): void {
    this.#pending.set(part, '')
  }

  /** The input that can be told after this piece. */
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

  /** The rest of an input that has ended. */
  end(part: number): string {
    const pending = this.#pending.get(part) ?? ''
    this.#pending.delete(part)
    return inputOrEmpty(pending) === pending ? pending : ''
  }
}
