import type { EndpointDialects } from '../../parse-request.ts'
import type { RecordingLengths } from '../../recording-length.ts'
import { imagesByForm, imagesByJson } from './images.ts'
import { speech } from './speech.ts'
import { transcriptions } from './transcriptions.ts'

/** Endpoints for images and audio. */
export type MediaEndpoint =
  | 'generations'
  | 'edits'
  | 'variations'
  | 'speech'
  | 'transcriptions'
  | 'translations'

/** Creates the endpoints for images and audio. */
export function mediaDialects(lengths: RecordingLengths): Readonly<Record<MediaEndpoint, EndpointDialects>> {
  return {
    generations: { json: imagesByJson('/images/generations') },
    edits: { json: imagesByJson('/images/edits'), form: imagesByForm('/images/edits') },
    variations: { form: imagesByForm('/images/variations') },
    speech: { json: speech(lengths) },
    transcriptions: { form: transcriptions('/audio/transcriptions', lengths) },
    translations: { form: transcriptions('/audio/translations', lengths) },
  }
}
