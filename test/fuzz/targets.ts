import type { Target } from './target.ts'
import type { CONVERSE } from './targets/converse.ts'
import type { CONVERSIONS } from './targets/conversions.ts'
import type { TEXTS } from './targets/texts.ts'

/** Loads a target. A process that fuzzes one target loads and measures no other. */
export type LoadTarget = () => Promise<Target>

const conversion =
  (name: keyof typeof CONVERSIONS): LoadTarget =>
  async () =>
    (await import('./targets/conversions.ts')).CONVERSIONS[name]
const converse =
  (name: keyof typeof CONVERSE): LoadTarget =>
  async () =>
    (await import('./targets/converse.ts')).CONVERSE[name]
const text =
  (name: keyof typeof TEXTS): LoadTarget =>
  async () =>
    (await import('./targets/texts.ts')).TEXTS[name]

/** Parsers of external bytes: of HTTP/1.1, of JSON, of bodies, of event streams. */
export const READERS: Readonly<Record<string, LoadTarget>> = {
  'http-requests': async () => (await import('./targets/http-requests.ts')).HTTP_REQUESTS,
  'http-responses': async () => (await import('./targets/http-responses.ts')).HTTP_RESPONSES,
  'json-objects': async () => (await import('./targets/json-objects.ts')).JSON_OBJECTS,
  'json-edits': async () => (await import('./targets/json-edits.ts')).JSON_EDITS,
  'json-texts': async () => (await import('./targets/json-texts.ts')).JSON_TEXTS,
  'request-bodies': async () => (await import('./targets/request-bodies.ts')).REQUEST_BODIES,
  forms: async () => (await import('./targets/forms.ts')).FORMS,
  'event-streams': async () => (await import('./targets/event-streams.ts')).EVENT_STREAMS,
  'web-socket-messages': async () => (await import('./targets/web-socket-messages.ts')).WEB_SOCKET_MESSAGES,
  'event-messages': async () => (await import('./targets/event-messages.ts')).EVENT_MESSAGES,
}

/** All targets by name, which is the name of the folder of their corpus as well. */
export const TARGETS: Readonly<Record<string, LoadTarget>> = {
  ...READERS,
  'chat-requests': conversion('chat-requests'),
  'messages-requests': conversion('messages-requests'),
  'chat-streams': conversion('chat-streams'),
  'messages-streams': conversion('messages-streams'),
  'chat-replies': conversion('chat-replies'),
  'messages-replies': conversion('messages-replies'),
  'converse-requests': converse('converse-requests'),
  'converse-streams': converse('converse-streams'),
  'converse-replies': converse('converse-replies'),
  'address-lists': text('address-lists'),
  'api-keys': text('api-keys'),
  'picture-hosts': text('picture-hosts'),
  decimals: text('decimals'),
  'search-patterns': text('search-patterns'),
}
