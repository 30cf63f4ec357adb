import type { Change } from '../domain/change.ts'

/** Prefix of every text, because other texts are sent over the same channel. */
const PREFIX = 'changed'
/** Maximum number of tokens in one text; a PostgreSQL notification must be shorter than 8,000 bytes. */
export const MAX_TOKENS = 400

/** Formats a change, and the node that made it, as the text to announce. */
export function formatChange(node: string, change: Change): string {
  return [PREFIX, node, change.of, ...idsOf(change)].join(' ')
}

function idsOf(change: Change): readonly number[] {
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

/** Parses an announced text; undefined for any other text. */
export function parseChange(text: string): { node: string; change: Change } | undefined {
  const [prefix, node = '', of, ...rest] = text.split(' ')
  if (prefix !== PREFIX || node === '' || rest.length > MAX_TOKENS) return undefined
  const ids = rest.map((id) => (/^\d{1,16}$/.test(id) ? Number(id) : Number.NaN))
  const [id] = ids
  if (ids.some((one) => !Number.isSafeInteger(one))) return undefined
  if (of === 'tokens' && id !== undefined) return { node, change: { of, ids } }
  if (of === 'user' && id !== undefined && ids.length === 1) return { node, change: { of, id } }
  if (ids.length > 0) return undefined
  if (of === 'keys' || of === 'settings' || of === 'anything') return { node, change: { of } }
  return undefined
}
