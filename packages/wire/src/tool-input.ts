import { type Choice, choiceOf, type Reply, type Stop } from './reply.ts'

/** Spellings of an empty input that servers use, including an empty JSON string. */
const EMPTY_INPUTS: ReadonlySet<string> = new Set(['', 'null', '""'])
/**
 * Matches the beginning of a text that may still turn out to be an empty input. It is so short that it can be
 * tested with each piece.
 */
const MAY_BE_EMPTY = /^\s{0,16}(?:n(?:u(?:l(?:l\s{0,16})?)?)?|"(?:"\s{0,16})?)?$/

/** Returns the JSON text of a tool's input unchanged; `{}` if it is empty. */
export function inputOrEmpty(input: string): string {
  // Nearly all inputs are objects, which can be long and need no further check.
  return !input.startsWith('{') && EMPTY_INPUTS.has(input.trim()) ? '{}' : input
}

/** Returns a tool's input, trimmed, if it is a JSON object; otherwise undefined. */
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
 * The inputs of the tool calls in one stream, which are forwarded as they arrive. An input that may turn out
 * to be `null`, or another spelling of an empty input, is held back until that is certain.
 */
export class StreamedInputs {
  /** Text that is held back, by part. Parts whose input is known not to be empty are not listed. */
  readonly #pending = new Map<number, string>()

  begin(part: number): void {
    this.#pending.set(part, '')
  }

  /** Reports whether everything that arrives for this part is forwarded at once. */
  passes(part: number): boolean {
    return !this.#pending.has(part)
  }

  /** Adds a piece. Returns the text that can be forwarded. */
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

  /** Ends an input. Returns the text that was held back, unless it is empty. */
  end(part: number): string {
    const pending = this.#pending.get(part) ?? ''
    this.#pending.delete(part)
    return inputOrEmpty(pending) === pending ? pending : ''
  }
}

/**
 * Used as the stop of a reply in which the arguments of a call were cut off, whatever reason the provider
 * gave; otherwise an agent would run the incomplete call.
 */
export const CUT_OFF_STOP: Stop = { reason: 'length' }

/**
 * Reports whether a call's arguments are not a JSON object: the output ended within them, or they are
 * malformed.
 */
export function isCutOff(input: string): boolean {
  return inputObject(input) === undefined
}

/** Returns the reply; if the arguments of a call were cut off, with `CUT_OFF_STOP` as its stop. */
export function withCutOffStop(reply: Reply): Reply {
  const others = reply.others?.map(choiceWithCutStop)
  const isSame = !others?.some((choice, index) => choice !== reply.others?.[index])
  return choiceWithCutStop(isSame || !others ? reply : { ...reply, others })
}

function choiceWithCutStop<Given extends Choice>(choice: Given): Given {
  const hasCutCall = choice.parts.some((part) => part.kind === 'tool-call' && isCutOff(part.input))
  return hasCutCall && choice.stop.reason !== CUT_OFF_STOP.reason ? { ...choice, stop: CUT_OFF_STOP } : choice
}

/** Collects the arguments of the calls in a stream, to detect at its end whether any were cut off. */
export class StreamedCallInputs {
  readonly #inputs = new Map<number, string>()

  add(part: number, text: string): void {
    this.#inputs.set(part, (this.#inputs.get(part) ?? '') + text)
  }

  /** Reports whether any arguments in a choice were cut off. */
  areCutIn(choice: number): boolean {
    return [...this.#inputs].some(([part, input]) => choiceOf(part) === choice && isCutOff(input))
  }
}
