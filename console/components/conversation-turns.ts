import type { ConversationTurn } from '../api/content.ts'

/** The parts that the previous call of the same session did not contain, in their turns. */
export function turnsSincePreviousCall(
  turns: readonly ConversationTurn[],
  before: readonly ConversationTurn[],
): readonly ConversationTurn[] {
  const known = partsOf(before)
  const all = partsOf(turns)
  const same = all.findIndex((part, at) => part !== known[at])
  let skipped = same === -1 ? known.length : same
  return turns.flatMap(({ role, parts }) => {
    const rest = parts.slice(skipped)
    skipped = Math.max(0, skipped - parts.length)
    return rest.length > 0 ? [{ role, parts: rest }] : []
  })
}

/** The parts of all turns with their roles, as texts that can be compared. A model may lay out JSON in another way. */
function partsOf(turns: readonly ConversationTurn[]): readonly string[] {
  return turns.flatMap(({ role, parts }) =>
    parts.map((part) =>
      JSON.stringify([role, part], (name, value: unknown) =>
        name === 'input' ? laidOut(String(value)) : value,
      ),
    ),
  )
}

/** JSON in lines; any other text as it is. */
export function laidOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
