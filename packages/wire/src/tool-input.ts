import { type Choice, choiceOf, type Reply, type Stop } from './reply.ts'

/** Texts that servers send as an empty tool input, including an empty JSON string. */
const EMPTY_INPUTS: ReadonlySet<string> = new Set(['', 'null', '""'])
/**
 * Matches the beginning of a tool input that can still turn out to be empty. It is short, so that testing it
 * with each piece is cheap.
 */
const MAY_BE_EMPTY = /^\s{0,16}(?:n(?:u(?:l(?:l\s{0,16})?)?)?|"(?:"\s{0,16})?)?$/

/** Returns the JSON text of a tool's input unchanged; `{}` if it is empty. */
export function inputOrEmpty(input: string): string {
  // Nearly all inputs are objects, which can be long and need no further check.
  return !input.startsWith('{') && EMPTY_INPUTS.has(input.trim()) ? '{}' : input
}

/** Returns a tool's input, trimmed, if it is a JSON object; undefined otherwise. */
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
 * Passes on the inputs of the tool calls in one stream as they arrive. The beginning of an input is held back
 * while it may still be `null` or another form of empty input.
 */
export class StreamedInputs {
  /**
   * Text that is held back, by the index of the part. Parts whose input is certainly not empty are not in it.
   */
  readonly #pending = new Map<number, string>()

  begin(part: number): void {
    this.#pending.set(part, '')
  }

  /** Whether everything that arrives for this part is passed on at once. */
  passes(part: number): boolean {
    return !this.#pending.has(part)
  }

  /** Adds a piece of an input. Returns the text that can be passed on. */
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

  /** Ends an input. Returns the text that was held back, unless the input is empty. */
  end(part: number): string {
    const pending = this.#pending.get(part) ?? ''
    this.#pending.delete(part)
    return inputOrEmpty(pending) === pending ? pending : ''
  }
}

/**
 * Stop reason of a response with a tool call whose arguments were cut off, whatever reason the provider
 * stated. Otherwise an agent would run the incomplete call.
 */
export const CUT_OFF_STOP: Stop = { reason: 'length' }

/**
 * Whether a call's arguments are not a JSON object: either the output ended within them, or they are
 * malformed.
 */
export function isCutOff(input: string): boolean {
  return inputObject(input) === undefined
}

/** Returns the reply. If the arguments of a call were cut off, its stop is `CUT_OFF_STOP`. */
export function withCutOffStop(reply: Reply): Reply {
  const others = reply.others?.map(choiceWithCutStop)
  const isSame = !others?.some((choice, index) => choice !== reply.others?.[index])
  return choiceWithCutStop(isSame || !others ? reply : { ...reply, others })
}

function choiceWithCutStop<Given extends Choice>(choice: Given): Given {
  const hasCutCall = choice.parts.some((part) => part.kind === 'tool-call' && isCutOff(part.input))
  return hasCutCall && choice.stop.reason !== CUT_OFF_STOP.reason ? { ...choice, stop: CUT_OFF_STOP } : choice
}

/** Collects the arguments of the tool calls in a stream, to detect at its end whether any were cut off. */
export class StreamedCallInputs {
  readonly #inputs = new Map<number, string>()

  add(part: number, text: string): void {
    this.#inputs.set(part, (this.#inputs.get(part) ?? '') + text)
  }

  /** Whether the arguments of a call in this choice were cut off. */
  areCutIn(choice: number): boolean {
    return [...this.#inputs].some(([part, input]) => choiceOf(part) === choice && isCutOff(input))
  }
}
