import type { Conversation, Part, SystemText, Turn } from '../conversation.ts'

/** The conversation with later system texts as the user's words in their places. */
export function withSystemInPlace(conversation: Conversation): Conversation {
  const later = conversation.system.filter(({ at }) => at !== undefined)
  if (later.length === 0) return conversation
  const system = conversation.system.filter(({ at }) => at === undefined)
  return { ...conversation, system, turns: withTexts(conversation.turns, later) }
}

function withTexts(turns: readonly Turn[], later: readonly SystemText[]): Turn[] {
  const said: Turn[] = []
  for (let number = 0; number <= turns.length; number++) {
    const turn = turns[number]
    const texts = later.filter(({ at }) => at?.turn === number)
    if (turn?.role === 'user') said.push({ ...turn, parts: merged(turn.parts, texts) })
    else {
      if (texts.length > 0) said.push({ role: 'user', parts: texts })
      if (turn) said.push(turn)
    }
  }
  return said
}

function merged(parts: readonly Part[], texts: readonly SystemText[]): readonly Part[] {
  if (texts.length === 0) return parts
  return Array.from({ length: parts.length + 1 }, (_, number) => [
    ...texts.filter(({ at }) => at?.part === number),
    ...parts.slice(number, number + 1),
  ]).flat()
}
