import type { Target } from './target.ts'
import { CONVERSIONS } from './targets/conversions.ts'
import { EVENT_STREAMS } from './targets/event-streams.ts'
import { FORMS } from './targets/forms.ts'
import { HTTP_RESPONSES } from './targets/http-responses.ts'
import { HTTP_REQUESTS } from './targets/http-requests.ts'
import { JSON_EDITS } from './targets/json-edits.ts'
import { JSON_OBJECTS } from './targets/json-objects.ts'
import { JSON_TEXTS } from './targets/json-texts.ts'
import { REQUEST_BODIES } from './targets/request-bodies.ts'
import { TEXTS } from './targets/texts.ts'

/** Readers of bytes from outside: parsers of HTTP/1.1, of JSON, of bodies, of event streams. */
export const READERS: Readonly<Record<string, Target>> = {
  'http-requests': HTTP_REQUESTS,
  'http-responses': HTTP_RESPONSES,
  'json-objects': JSON_OBJECTS,
  'json-edits': JSON_EDITS,
  'json-texts': JSON_TEXTS,
  'request-bodies': REQUEST_BODIES,
  forms: FORMS,
  'event-streams': EVENT_STREAMS,
}

/** All targets by name, which is the name of the folder of their corpus as well. */
export const TARGETS: Readonly<Record<string, Target>> = { ...READERS, ...CONVERSIONS, ...TEXTS }
