import type { Reply, ReplyEvent, ReplyPart, StartedPart } from './reply.ts'

/** Part while its text is collected. */
interface GrowingPart {
  readonly started: StartedPart
  text: string
  proof: Extract<ReplyEvent, { kind: 'proof' }>['proof'] | undefined
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
        parts.set(event.index, { started: event.part, text: '', proof: undefined })
        break
      case 'text':
      case 'thinking':
      case 'tool-input': {
        const part = parts.get(event.index)
        if (part) part.text += event.text
        break
      }
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

function partOf({ started, text, proof }: GrowingPart): ReplyPart {
  switch (started.kind) {
    case 'text':
      return { kind: 'text', text }
    case 'thinking':
      return { kind: 'thinking', text, ...(proof && { proof }) }
    case 'tool-call':
      return { ...started, input: text }
    case 'opaque':
      return started
  }
}
