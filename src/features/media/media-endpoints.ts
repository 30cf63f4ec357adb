import type { EndpointDialects } from '../../call/parse-request.ts'
import type { RecordingLengths } from './recording-length.ts'
import { imagesByForm, imagesByJson } from './images.ts'
import { speechDialect } from './speech.ts'
import { transcriptionsDialect } from './transcriptions.ts'

/** Endpoints for images and audio. */
export type MediaEndpoint =
  | 'generations'
  | 'edits'
  | 'variations'
  | 'speech'
  | 'transcriptions'
  | 'translations'

/** Dialects of these endpoints. */
export type MediaDialects = Readonly<Record<MediaEndpoint, EndpointDialects>>

/** Creates the endpoints for images and audio. */
export function mediaDialects(lengths: RecordingLengths): MediaDialects {
  return {
    generations: { json: imagesByJson('/images/generations') },
    edits: { json: imagesByJson('/images/edits'), form: imagesByForm('/images/edits') },
    variations: { form: imagesByForm('/images/variations') },
    speech: { json: speechDialect(lengths) },
    transcriptions: { form: transcriptionsDialect('/audio/transcriptions', lengths) },
    translations: { form: transcriptionsDialect('/audio/translations', lengths) },
  }
}
