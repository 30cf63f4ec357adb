/** The protocols that are measured. */
export type Wire = 'chat' | 'messages'

/** Where each is spoken, below the upstream's and the gateways' address. */
export const PATHS: Readonly<Record<Wire, string>> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
}

/**
 * What the upstream does: answers whole, at once or after `LATE_MS`; or streams `BURST_EVENTS` in one write,
 * one every `PACE_MS` until it is told to finish, or one and no more until then, or one every second for as
 * long as it is listened to.
 */
export type Behaviour = (typeof BEHAVIOURS)[number]
export const BEHAVIOURS = ['whole', 'late', 'burst', 'paced', 'idle', 'held'] as const

/** Events of a burst that carry content. */
export const BURST_EVENTS = 200
/** 20 events a second. */
export const PACE_MS = 50
/** How long the upstream holds a late answer. */
export const LATE_MS = 20

/** Names the model that has this behaviour, behind an upstream of that protocol. */
export function modelOf(behaviour: Behaviour, upstream: Wire): string {
  return `${behaviour}-${upstream}`
}

/** Every such model. */
export const MODELS: Readonly<Record<Wire, readonly string[]>> = {
  chat: modelsBehind('chat'),
  messages: modelsBehind('messages'),
}

function modelsBehind(upstream: Wire): string[] {
  return BEHAVIOURS.map((behaviour) => modelOf(behaviour, upstream))
}

/** The key of every call. */
export const CALLER_KEY = 'sk-bench'
