import { choiceOf } from './choices.ts'
import type { Choice, Reply, Stop } from './reply.ts'
import { inputObject } from './tool-input.ts'

/**
 * Stop of a reply with a call whose arguments were cut off, whatever reason the provider gave. Otherwise an
 * agent would run the incomplete call.
 */
export const CUT_STOP: Stop = { reason: 'length' }

/**
 * Reports whether a call's arguments are not a JSON object: the output ended within them, or they are
 * malformed.
 */
export function isCut(input: string): boolean {
  return inputObject(input) === undefined
}

/** Returns the reply; if the arguments of a call were cut off, with `CUT_STOP` as its stop. */
export function withCutStop(reply: Reply): Reply {
  const others = reply.others?.map(choiceWithCutStop)
  const isSame = !others?.some((choice, index) => choice !== reply.others?.[index])
  return choiceWithCutStop(isSame || !others ? reply : { ...reply, others })
}

function choiceWithCutStop<Given extends Choice>(choice: Given): Given {
  const hasCutCall = choice.parts.some((part) => part.kind === 'tool-call' && isCut(part.input))
  return hasCutCall && choice.stop.reason !== CUT_STOP.reason ? { ...choice, stop: CUT_STOP } : choice
}

/** Arguments of the calls in a stream, to detect at its end whether any were cut off. */
export class CallInputs {
  readonly #inputs = new Map<number, string>()

  add(part: number, text: string): void {
    this.#inputs.set(part, (this.#inputs.get(part) ?? '') + text)
  }

  /** Reports whether any arguments were cut off in a choice. */
  areCutIn(choice: number): boolean {
    return [...this.#inputs].some(([part, input]) => choiceOf(part) === choice && isCut(input))
  }
}
