import { combineEvents, type Reply, type ReplyEvent } from '@sluice/wire/reply'

/**
 * Combines a stream's events into a whole reply with all of its choices. Returns undefined without a `start`
 * or an `end`.
 */
export function foldReply(events: readonly ReplyEvent[]): Reply | undefined {
  const start = events.findLast((event) => event.kind === 'start')
  const end = events.findLast((event) => event.kind === 'end')
  if (!start || !end) return undefined
  const others = end.others?.map((stop, i) => ({ parts: combineEvents(events, i + 1), stop }))
  return {
    id: start.id,
    model: start.model,
    parts: combineEvents(events),
    stop: end.stop,
    usage: end.usage,
    ...(others && { others }),
  }
}
