import {
  imageFormSchema,
  imageRequestSchema,
  speechRequestSchema,
  transcriptFormSchema,
  variationFormSchema,
} from '@sluice/wire/media'
import type { MediaEndpoint } from '../features/media/media-endpoints.ts'
import type { CallEndpoint } from './endpoint.ts'

const EVENTS = ['application/json', 'text/event-stream'] as const
const TRANSCRIPTS = [...EVENTS, 'text/plain', 'text/vtt'] as const
const SOUND = ['mpeg', 'opus', 'aac', 'flac', 'wav', 'pcm'].map((format) => `audio/${format}`)

type EndpointDescription = Pick<
  CallEndpoint,
  'path' | 'summary' | 'requestSchema' | 'formSchema' | 'contentTypes'
>

const ENDPOINTS: Readonly<Record<MediaEndpoint, EndpointDescription>> = {
  generations: {
    path: '/v1/images/generations',
    summary: 'Images of a prompt, whole or streamed',
    requestSchema: imageRequestSchema,
    contentTypes: EVENTS,
  },
  edits: {
    path: '/v1/images/edits',
    summary: 'Images made from others, whole or streamed',
    requestSchema: imageRequestSchema,
    formSchema: imageFormSchema,
    contentTypes: EVENTS,
  },
  variations: {
    path: '/v1/images/variations',
    summary: 'Variations of an image',
    formSchema: variationFormSchema,
    contentTypes: ['application/json'],
  },
  speech: {
    path: '/v1/audio/speech',
    summary: 'Speech of a text',
    requestSchema: speechRequestSchema,
    contentTypes: [...SOUND, 'text/event-stream'],
  },
  transcriptions: {
    path: '/v1/audio/transcriptions',
    summary: 'The text of a recording',
    formSchema: transcriptFormSchema,
    contentTypes: TRANSCRIPTS,
  },
  translations: {
    path: '/v1/audio/translations',
    summary: 'The text of a recording, in English',
    formSchema: transcriptFormSchema,
    contentTypes: TRANSCRIPTS,
  },
}

/** Endpoints for images and audio: `docs/api.md: Images`, `docs/api.md: Audio`. */
export const MEDIA_ENDPOINTS: readonly CallEndpoint[] = Object.entries(ENDPOINTS).map(
  ([name, described]) => ({
    ...described,
    method: 'POST',
    area: 'relay',
    kind: 'raw',
    access: 'api-key',
    keyIn: 'bearer',
    repeats: 'past the cache',
    handle: (exchange, caller, { relay, media }) =>
      relay.callIn(media[name as MediaEndpoint], exchange, caller),
  }),
)
