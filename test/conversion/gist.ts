import type { Reply, ReplyPart } from '../../src/protocols/reply.ts'

/**
 * A reply as far as every form of it agrees: empty texts say nothing, and an empty input is an empty object.
 * `in sum` leaves out what a whole chat answer cannot say: what came before what.
 */
export function gist(reply: Reply | undefined, how: 'in order' | 'in sum' = 'in order'): unknown {
  if (!reply) return undefined
  const { parts, stop, usage } = reply
  const kept = parts.filter((part) => part.kind !== 'text' || part.text !== '').map(plain)
  if (how === 'in order') return { ...reply, parts: kept }
  const textOf = (kind: ReplyPart['kind']): string =>
    kept.map((part) => (part.kind === kind && 'text' in part ? part.text : '')).join('')
  return {
    text: textOf('text'),
    thoughts: textOf('thinking'),
    calls: kept.filter(({ kind }) => kind === 'tool-call'),
    stop,
    usage,
  }
}

function plain(part: ReplyPart): ReplyPart {
  return part.kind === 'tool-call' ? { ...part, input: part.input.trim() || '{}' } : part
}
