import type { Conversation } from './conversation.ts'
import { refuse } from './field-check.ts'
import type { ReplyEvent } from './reply.ts'

/** Numbers of parts that each choice of a stream has for itself: those of the first begin at 0. */
const PARTS_OF_CHOICE = 2 ** 24

/** Several choices that a client asks for, for spreading into a conversation. */
export function choicesAsked(field: 'n' | 'candidateCount', count: unknown): Pick<Conversation, 'choices'> {
  return typeof count === 'number' && count > 1 ? { choices: { field, count } } : {}
}

/** Number of choices that are asked for. */
export function choicesOf({ choices }: Pick<Conversation, 'choices'>): number {
  return choices?.count ?? 1
}

/** Throws `invalid_request` for several choices: the dialect that is written has one. */
export function refuseChoices({ choices }: Pick<Conversation, 'choices'>): void {
  if (choices) refuse(choices.field, `1, as this model's channel gives one answer`, 'a larger number')
}

/** Choice that a part of a stream belongs to, from 0. */
export function choiceOf(part: number): number {
  return Math.floor(part / PARTS_OF_CHOICE)
}

/** Event of a choice's own parts, with their numbers among those of all choices. */
export function ofChoice(choice: number, event: ReplyEvent): ReplyEvent {
  return 'index' in event ? { ...event, index: choice * PARTS_OF_CHOICE + event.index } : event
}
