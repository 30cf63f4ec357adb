import { speechReply, transcriptReply } from './audio.ts'
import { imagesReply } from './images.ts'
import { bearerToken, type Upstream, bodyOfPost } from './upstream.ts'

/** Creates a simulated provider of images, speech and transcripts. */
export function mediaUpstream(models: readonly string[]): Upstream {
  return {
    bodyIfServed: bodyOfPost(
      '/images/generations',
      '/images/edits',
      '/images/variations',
      '/audio/speech',
      '/audio/transcriptions',
      '/audio/translations',
    ),
    models,
    keyOf: bearerToken,
    reply(body, _model, stamp, { path, file }) {
      if (path.startsWith('/images/')) return imagesReply(body, stamp, path)
      return path === '/audio/speech' ? speechReply(body) : transcriptReply(body, file)
    },
    refuse: ({ kind, message }) => ({
      error: { message, type: 'invalid_request_error', param: null, code: kind },
    }),
  }
}
