import type { Reply, ReplyPart } from '../../src/protocols/reply.ts'

/**
 * The parts of a reply on which all its forms agree: empty texts are dropped, and an empty input is an empty
 * object. `in sum` also drops the order of parts, which a whole chat response cannot express.
 */
export function comparable(reply: Reply | undefined, how: 'in order' | 'in sum' = 'in order'): unknown {
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
