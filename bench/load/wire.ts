/** The dialects that are measured. */
export type Wire = 'chat' | 'messages' | 'responses' | 'gemini'

/**
 * The path of each dialect, below the base address of upstream and gateways; Gemini's continues with model
 * and method.
 */
export const PATHS: Readonly<Record<Wire, string>> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
  gemini: '/v1/models/',
}

/**
 * The upstream's behaviour: whole responses, at once, with the provider's limits in their headers, or after
 * `LATE_MS`; or streams: `BURST_EVENTS` in one write; one event every `PACE_MS` until the message `finish`; one
 * event and no more until then; or one event per second as long as the client reads.
 */
export type Behaviour = (typeof BEHAVIOURS)[number]
export const BEHAVIOURS = ['whole', 'stating', 'late', 'burst', 'paced', 'idle', 'held'] as const

/** Number of events with content in a burst. */
export const BURST_EVENTS = 200
/** Milliseconds between paced events: 20 a second. */
export const PACE_MS = 50
/** Milliseconds for which the upstream holds a late response. */
export const LATE_MS = 20

/** Name of the model with this behaviour, at an upstream of that dialect. */
export function modelOf(behaviour: Behaviour, upstream: Wire): string {
  return `${behaviour}-${upstream}`
}

/** The path of a call of a model in a dialect. */
export function pathOf(wire: Wire, model: string, isStream: boolean): string {
  if (wire !== 'gemini') return PATHS[wire]
  return `${PATHS.gemini}${model}:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`
}

/** The names of all models with a behaviour, by the dialect of the upstream. */
export const MODELS: Readonly<Record<Wire, readonly string[]>> = {
  chat: modelsBehind('chat'),
  messages: modelsBehind('messages'),
  responses: modelsBehind('responses'),
  gemini: modelsBehind('gemini'),
}

function modelsBehind(upstream: Wire): string[] {
  return BEHAVIOURS.map((behaviour) => modelOf(behaviour, upstream))
}

/** The key of every call, except those whose prompts are remembered. */
export const CLIENT_KEY = 'sk-bench'
/** The key of calls whose prompts are remembered, because each holds a good part of what the key has left. */
export const SHORT_KEY = 'sk-benchshort'
