import { choiceOf } from './choices.ts'
import type { Citation } from './citation.ts'
import type { Reply, ReplyEvent, ReplyPart, StartedPart } from './reply.ts'

/** Part whose text is being collected. */
interface GrowingPart {
  readonly started: StartedPart
  text: string
  /** The text without links to media; undefined if it has none. */
  withoutMedia: string | undefined
  proof: Extract<ReplyEvent, { kind: 'proof' }>['proof'] | undefined
  readonly citations: Citation[]
  readonly logprobs: unknown[]
}

/**
 * Combines a stream's events into a whole reply with all of its choices. Returns undefined without a `start`
 * or an `end`.
 */
export function foldReply(events: readonly ReplyEvent[]): Reply | undefined {
  const start = events.findLast((event) => event.kind === 'start')
  const end = events.findLast((event) => event.kind === 'end')
  if (!start || !end) return undefined
  const others = end.others?.map((stop, i) => ({ parts: foldParts(events, i + 1), stop }))
  return {
    id: start.id,
    model: start.model,
    parts: foldParts(events),
    stop: end.stop,
    usage: end.usage,
    ...(others && { others }),
  }
}

/** Combines the events of one choice into its parts. */
export function foldParts(events: Iterable<ReplyEvent>, choice = 0): readonly ReplyPart[] {
  const parts = new Map<number, GrowingPart>()
  for (const event of events) {
    switch (event.kind) {
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
      case 'start':
      case 'end':
      case 'part-end':
      case 'ping':
      case 'failure':
    }
  }
  return [...parts]
    .filter(([index]) => choiceOf(index) === choice)
    .sort(([a], [b]) => a - b)
    .map(([, part]) => partOf(part))
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
