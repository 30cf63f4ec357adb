import type { Citation } from './citation.ts'
import type { Reply, ReplyEvent, ReplyPart, StartedPart } from './reply.ts'

/** Part while its text is collected. */
interface GrowingPart {
  readonly started: StartedPart
  text: string
  /** The text without links to media; undefined without any. */
  withoutMedia: string | undefined
  proof: Extract<ReplyEvent, { kind: 'proof' }>['proof'] | undefined
  readonly citations: Citation[]
  readonly logprobs: unknown[]
}

/** Folds a stream's events into a whole reply; undefined without a `start` or an `end`. */
export function foldReply(events: Iterable<ReplyEvent>): Reply | undefined {
  let start: Extract<ReplyEvent, { kind: 'start' }> | undefined
  let end: Extract<ReplyEvent, { kind: 'end' }> | undefined
  const parts = new Map<number, GrowingPart>()
  for (const event of events) {
    switch (event.kind) {
      case 'start':
        start = event
        break
      case 'part-start':
        parts.set(event.index, {
          started: event.part,
          text: '',
          withoutMedia: undefined,
          proof: undefined,
          citations: [],
          logprobs: [],
        })
        break
      case 'text':
      case 'thinking':
      case 'tool-input': {
        const part = parts.get(event.index)
        if (!part) break
        const isMedia = event.kind === 'text' && event.isMedia
        if (isMedia) part.withoutMedia ??= part.text
        else if (part.withoutMedia !== undefined) part.withoutMedia += event.text
        part.text += event.text
        if (event.kind === 'text' && event.logprobs) part.logprobs.push(...event.logprobs)
        break
      }
      case 'citation':
        parts.get(event.index)?.citations.push(event.citation)
        break
      case 'proof': {
        const part = parts.get(event.index)
        if (part) part.proof = event.proof
        break
      }
      case 'end':
        end = event
        break
      case 'part-end':
      case 'ping':
      case 'failure':
    }
  }
  if (!start || !end) return undefined
  const ordered = [...parts].sort(([a], [b]) => a - b).map(([, part]) => partOf(part))
  return {
    id: start.id,
    model: start.model,
    parts: ordered,
    stop: end.stop,
    usage: end.usage,
  }
}

function partOf({ started, text, withoutMedia, proof, citations, logprobs }: GrowingPart): ReplyPart {
  switch (started.kind) {
    case 'text':
      return {
        kind: 'text',
        text,
        ...(withoutMedia !== undefined && { withoutMedia }),
        ...(citations.length > 0 && { citations }),
        ...(logprobs.length > 0 && { logprobs }),
        ...(started.refusal && { refusal: true }),
      }
    case 'thinking':
      return { kind: 'thinking', text, ...(proof && { proof }) }
    case 'tool-call':
      return { ...started, input: text }
    case 'search':
    case 'opaque':
      return started
  }
}
