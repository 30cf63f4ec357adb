import { piecesOfAnswer } from './answer-pieces.ts'
import { requestTurns } from './request-turns.ts'
import { isJsonObject, parsedJson, type ConversationTurn } from './conversation-pieces.ts'

/**
 * The conversation of a call, read from the text of its request and its response in any protocol; undefined
 * if the text is not a conversation.
 */
export function conversationOfCall(request: string, answer: string): readonly ConversationTurn[] | undefined {
  const asked = parsedJson(request)
  if (!isJsonObject(asked)) return undefined
  const turns = requestTurns(asked)
  const answered = piecesOfAnswer(answer)
  const all = answered.length > 0 ? [...turns, { role: 'assistant', pieces: answered }] : turns
  return all.length > 0 ? all : undefined
}

/** The turns that the previous call of the same session did not contain. */
export function turnsSincePreviousCall(
  turns: readonly ConversationTurn[],
  before: readonly ConversationTurn[],
): readonly ConversationTurn[] {
  const same = turns.findIndex((turn, at) => JSON.stringify(turn) !== JSON.stringify(before[at]))
  return same === -1 ? turns.slice(before.length) : turns.slice(same)
}
