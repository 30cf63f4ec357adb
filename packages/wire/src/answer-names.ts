/** Maximum length of an id or of the name of a model that is kept. */
const MAX_NAME_LENGTH = 256
/** Maximum number of choices whose reasons are kept. */
const MAX_CHOICES = 128
/** Reasons are words of the protocols, such as `stop` or `MAX_TOKENS`. */
const REASON = /^\w{1,64}$/

/** What an answer states about itself: its id, its model, and why each of its choices ended. */
export class AnswerNames {
  /** Id of the answer; undefined if it states none. */
  id: string | undefined
  /** Name of the model that answered; undefined if the answer states none. */
  model: string | undefined
  readonly #reasons: (string | undefined)[] = []

  /** Notes id and model. The first ones count; values that are not short texts are ignored. */
  note(id: unknown, model: unknown): void {
    this.id ??= shortName(id)
    this.model ??= shortName(model)
  }

  /** Notes why a choice ended. */
  finish(choice: number, reason: unknown): void {
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
