import type { Change } from '../domain/change.ts'

/** Begins all texts, so that others may share the channel. */
const WORD = 'changed'
/** Tokens that one text names at most: PostgreSQL takes less than 8,000 bytes. */
export const MAX_TOKENS = 400

/** A change as nodes tell it to each other, and which node did it. */
export function formatChange(node: string, change: Change): string {
  return [WORD, node, change.of, ...objects(change)].join(' ')
}

function objects(change: Change): readonly number[] {
  switch (change.of) {
    case 'tokens':
      return change.ids
    case 'user':
      return [change.id]
    case 'keys':
    case 'settings':
    case 'anything':
      return []
  }
}

/** What such a text says; undefined for one that is none, or that somebody else wrote. */
export function parseChange(text: string): { node: string; change: Change } | undefined {
  const [word, node = '', of, ...rest] = text.split(' ')
  if (word !== WORD || node === '' || rest.length > MAX_TOKENS) return undefined
  const ids = rest.map((id) => (/^\d{1,16}$/.test(id) ? Number(id) : Number.NaN))
  const [id] = ids
  if (ids.some((one) => !Number.isSafeInteger(one))) return undefined
  if (of === 'tokens' && id !== undefined) return { node, change: { of, ids } }
  if (of === 'user' && id !== undefined && ids.length === 1) return { node, change: { of, id } }
  if (ids.length > 0) return undefined
  if (of === 'keys' || of === 'settings' || of === 'anything') return { node, change: { of } }
  return undefined
}
