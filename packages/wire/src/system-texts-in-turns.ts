import type { Conversation, Part, PartPosition, SystemText, Turn } from './conversation.ts'

/**
 * Moves system texts that come after the first turn into the user's turns at their positions. If they were
 * put before the first turn, the beginning of the prompt would change and would no longer match the
 * provider's cache. The moved texts keep their `at`, by which encoders of protocols with system messages
 * recognize them.
 */
export function withSystemTextsInTurns(conversation: Conversation): Conversation {
  const later = conversation.system.filter(({ at }) => at !== undefined)
  if (later.length === 0) return conversation
  const system = conversation.system.filter(({ at }) => at === undefined)
  return { ...conversation, system, turns: withTexts(conversation.turns, later) }
}

function withTexts(turns: readonly Turn[], later: readonly SystemText[]): Turn[] {
  const withTexts: Turn[] = []
  const byTurn = Map.groupBy(later, ({ at }) => at?.turn)
  for (let number = 0; number <= turns.length; number++) {
    const turn = turns[number]
    const texts = byTurn.get(number) ?? []
    if (turn?.role === 'user') withTexts.push({ ...turn, parts: merged(turn.parts, texts) })
    else {
      if (texts.length > 0) withTexts.push({ role: 'user', parts: texts })
      if (turn) withTexts.push(turn)
    }
  }
  return withTexts
}

function merged(parts: readonly Part[], texts: readonly SystemText[]): readonly Part[] {
  if (texts.length === 0) return parts
  const byPart = Map.groupBy(texts, ({ at }) => at?.part)
  return Array.from({ length: parts.length + 1 }, (_, number) => [
    ...(byPart.get(number) ?? []),
    ...parts.slice(number, number + 1),
  ]).flat()
}

/** Whether a part of a user's turn is a system text. */
export function isSystemText(part: Part): part is SystemText & { readonly at: PartPosition } {
  return 'at' in part
}
