import type { Conversation } from './conversation.ts'
import { refuse } from './field-check.ts'
import type { ReplyEvent } from './reply.ts'

/**
 * Size of the range of part numbers that each choice of a stream has; that of the first choice begins at 0.
 */
const PARTS_OF_CHOICE = 2 ** 24

/** Number of choices that a client requests, for spreading into a conversation. */
export function choicesAsked(field: 'n' | 'candidateCount', count: unknown): Pick<Conversation, 'choices'> {
  return typeof count === 'number' && count > 1 ? { choices: { field, count } } : {}
}

/** Number of choices that are requested. */
export function choicesOf({ choices }: Pick<Conversation, 'choices'>): number {
  return choices?.count ?? 1
}

/** Throws `invalid_request` if several choices are requested, because the target dialect has only one. */
export function refuseChoices({ choices }: Pick<Conversation, 'choices'>): void {
  if (choices) refuse(choices.field, `1, as this model's channel gives one answer`, 'a larger number')
}

/** Index from 0 of the choice to which a part of a stream belongs. */
export function choiceOf(part: number): number {
  return Math.floor(part / PARTS_OF_CHOICE)
}

/** Renumbers an event of one choice, so that its part has a unique number among all choices. */
export function ofChoice(choice: number, event: ReplyEvent): ReplyEvent {
  return 'index' in event ? { ...event, index: choice * PARTS_OF_CHOICE + event.index } : event
}
