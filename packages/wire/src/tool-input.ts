import { type Choice, choiceOfPart, type Reply, type Stop } from './reply.ts'

/** Texts that servers send for a tool call without input. `""` is an empty JSON string. */
const EMPTY_INPUTS: ReadonlySet<string> = new Set(['', 'null', '""'])
/**
 * Matches the beginning of a tool input that can still turn out to be empty, such as `nu` of `null`. The
 * match is short, so that testing it with each piece is cheap.
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
 * Returns the input of a tool call in the history as a JSON object, which some protocols require. Text that
 * is none, such as arguments that were cut off, becomes its member `raw_arguments`, so that one bad call does
 * not end a conversation.
 */
export function historyInput(input: string): string {
  return inputObject(input) ?? JSON.stringify({ raw_arguments: input })
}

/**
 * Passes on the inputs of the tool calls in one stream as they arrive. The beginning of an input is held back
 * as long as it may become `null` or another text in `EMPTY_INPUTS`.
 */
export class StreamedInputs {
  /**
   * Text that is held back, by the index of the part. An entry is removed as soon as the input cannot be
   * empty.
   */
  readonly #pending = new Map<number, string>()

  begin(part: number): void {
    this.#pending.set(part, '')
  }

  /** Whether the input of this part is passed on at once, because it cannot be empty. */
  passes(part: number): boolean {
    return !this.#pending.has(part)
  }

  /** Adds a piece of the input of a part. Returns the text that can be passed on. */
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

  /** Ends the input of a part. Returns the text that was held back, unless the input is empty. */
  end(part: number): string {
    const pending = this.#pending.get(part) ?? ''
    this.#pending.delete(part)
    return inputOrEmpty(pending) === pending ? pending : ''
  }
}

/**
 * Stop reason of a response with a tool call whose arguments were cut off. It replaces the reason that the
 * provider stated, because otherwise an agent would run the incomplete call.
 */
export const CUT_OFF_STOP: Stop = { reason: 'length' }

/**
 * Whether the arguments of a tool call are not a JSON object, because the output ended within them or they
 * are malformed.
 */
export function isCutOff(input: string): boolean {
  return inputObject(input) === undefined
}

/** Returns the reply, with the stop reason `CUT_OFF_STOP` if the arguments of a tool call were cut off. */
export function withCutOffStop(reply: Reply): Reply {
  const others = reply.others?.map(choiceWithCutStop)
  const isSame = !others?.some((choice, index) => choice !== reply.others?.[index])
  return choiceWithCutStop(isSame || !others ? reply : { ...reply, others })
}

function choiceWithCutStop<Given extends Choice>(choice: Given): Given {
  const hasCutCall = choice.parts.some((part) => part.kind === 'tool-call' && isCutOff(part.input))
  return hasCutCall && choice.stop.reason !== CUT_OFF_STOP.reason ? { ...choice, stop: CUT_OFF_STOP } : choice
}

/** Collects the arguments of the tool calls in a stream, to find out at its end whether any were cut off. */
export class ToolInputCollector {
  readonly #inputs = new Map<number, string>()

  add(part: number, text: string): void {
    this.#inputs.set(part, (this.#inputs.get(part) ?? '') + text)
  }

  /** Whether the arguments of a tool call in this choice were cut off. */
  areCutIn(choice: number): boolean {
    return [...this.#inputs].some(([part, input]) => choiceOfPart(part) === choice && isCutOff(input))
  }
}
