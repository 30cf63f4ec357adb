import { answerOf } from './said-answers.ts'
import { requestTurns } from './said-requests.ts'
import { isMembers, parsed, type Turn } from './said.ts'

/**
 * The conversation of a call, read from the text of its request and its response in any protocol; undefined
 * if the text is not a conversation.
 */
export function conversationOf(request: string, answer: string): readonly Turn[] | undefined {
  const asked = parsed(request)
  if (!isMembers(asked)) return undefined
  const turns = requestTurns(asked)
  const answered = answerOf(answer)
  const all = answered.length > 0 ? [...turns, { role: 'assistant', pieces: answered }] : turns
  return all.length > 0 ? all : undefined
}

/** The turns that the previous call of the same session did not contain. */
export function newTurns(turns: readonly Turn[], before: readonly Turn[]): readonly Turn[] {
  const same = turns.findIndex((turn, at) => JSON.stringify(turn) !== JSON.stringify(before[at]))
  return same === -1 ? turns.slice(before.length) : turns.slice(same)
}
