import { answerOf } from './said-answers.ts'
import { requestTurns } from './said-requests.ts'
import { isMembers, parsed, type Turn } from './said.ts'

/**
 * The conversation of a call, from the bytes of its request and its answer in any of the dialects; undefined if
 * they are in none.
 */
export function conversationOf(request: string, answer: string): readonly Turn[] | undefined {
  const asked = parsed(request)
  if (!isMembers(asked)) return undefined
  const turns = requestTurns(asked)
  const answered = answerOf(answer)
  const all = answered.length > 0 ? [...turns, { role: 'assistant', pieces: answered }] : turns
  return all.length > 0 ? all : undefined
}

/** The turns of a conversation that an earlier one of the same session does not have. */
export function newTurns(turns: readonly Turn[], before: readonly Turn[]): readonly Turn[] {
  const same = turns.findIndex((turn, at) => JSON.stringify(turn) !== JSON.stringify(before[at]))
  return same === -1 ? turns.slice(before.length) : turns.slice(same)
}
