import { codePointsIn, type Reply, type ReplyPart } from '@sluice/wire/reply'

/**
 * The parts of a reply on which all its forms agree: empty texts are removed, and an empty input is an empty
 * object. `in sum` also ignores the order of parts, which a whole chat response cannot express; its citations
 * state positions in the whole text, if any.
 */
export function comparable(reply: Reply | undefined, how: 'in order' | 'in sum' = 'in order'): unknown {
  if (!reply) return undefined
  const { parts, stop, usage } = reply
  const kept = parts.filter((part) => part.kind !== 'text' || part.text !== '').map(plain)
  if (how === 'in order') {
    // A stream states its tier beside the reply.
    const { served: _, ...others } = reply
    return { ...others, parts: kept }
  }
  const textOf = (kind: ReplyPart['kind']): string =>
    kept.map((part) => (part.kind === kind && 'text' in part ? part.text : '')).join('')
  return {
    text: textOf('text'),
    thoughts: textOf('thinking'),
    calls: kept.filter(({ kind }) => kind === 'tool-call'),
    citations: citationsIn(kept),
    logprobs: kept.flatMap((part) => (part.kind === 'text' ? (part.logprobs ?? []) : [])),
    stop,
    usage,
  }
}

function citationsIn(parts: readonly ReplyPart[]): unknown[] {
  let length = 0
  return parts.flatMap((part) => {
    if (part.kind !== 'text') return []
    const base = length
    length += codePointsIn(part.text)
    return (part.citations ?? []).map(({ url, title, span }) => ({
      url,
      title,
      span: span && { start: base + span.start, end: base + span.end },
    }))
  })
}

function plain(part: ReplyPart): ReplyPart {
  return part.kind === 'tool-call' ? { ...part, input: part.input.trim() || '{}' } : part
}
