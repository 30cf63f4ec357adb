import { endReasonOf } from './end-reasons.ts'

/** Maximum length, in characters, of a stored id or model name. */
const MAX_NAME_LENGTH = 256
/** Maximum number of choices whose finish reasons are stored. */
const MAX_CHOICES = 128
/** Matches finish reasons of the protocols, such as `stop` or `MAX_TOKENS`. */
const REASON = /^\w{1,64}$/

/** What a response states about itself: its id, its model, and the finish reason of each choice. */
export class AnswerMetadata {
  /** Id of the answer; undefined if it states none. */
  id: string | undefined
  /** Name of the model that answered; undefined if the answer states none. */
  model: string | undefined
  /** Whether a choice ended for a reason that is not known. */
  hasUnknownEnd = false
  readonly #reasons: (string | undefined)[] = []

  /** Notes id and model, unless they are already known. Values other than short texts are ignored. */
  note(id: unknown, model: unknown): void {
    this.id ??= shortName(id)
    this.model ??= shortName(model)
  }

  /** Notes why a choice ended. */
  finish(choice: number, reason: unknown): void {
    if (typeof reason === 'string' && reason !== '' && !endReasonOf(reason)) this.hasUnknownEnd = true
    if (typeof reason === 'string' && REASON.test(reason) && choice >= 0 && choice < MAX_CHOICES)
      this.#reasons[choice] = reason
  }

  /** Why the choices ended, in their order; undefined for a choice that states no reason. */
  get reasons(): readonly (string | undefined)[] {
    return Array.from(this.#reasons)
  }
}

function shortName(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= MAX_NAME_LENGTH ? value : undefined
}
