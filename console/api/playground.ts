import type { ClientProtocol } from '@sluice/wire/protocols'
import { postForResponse } from './client.ts'

/** Paths of the endpoints for images, speech and embeddings. */
const MEDIA_PATHS = {
  images: 'images/generations',
  speech: 'audio/speech',
  embeddings: 'embeddings',
} as const

/** The model to call, the protocol, and whether the response is a stream. */
export interface ModelCallTarget {
  readonly protocol: ClientProtocol | keyof typeof MEDIA_PATHS
  readonly model: string
  readonly isStream: boolean
}

/**
 * Calls a model with one of the account's own keys, given by its id. The response is the same as that of a
 * call by a client.
 */
export function callWithKey(
  called: ModelCallTarget,
  keyId: number,
  body: object,
  signal: AbortSignal,
): Promise<Response> {
  return postForResponse(`/api/playground/${callPath(called)}`, body, {
    headers: {
      'gateway-key': String(keyId),
      ...(called.protocol === 'messages' && { 'anthropic-version': '2023-06-01' }),
    },
    signal,
  })
}

/** The path of a call, without the prefix `/api/playground/`. */
export function callPath({ protocol, model, isStream }: ModelCallTarget): string {
  if (protocol === 'chat') return 'chat/completions'
  if (protocol in MEDIA_PATHS) return MEDIA_PATHS[protocol as keyof typeof MEDIA_PATHS]
  if (protocol !== 'gemini') return protocol
  const method = isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'
  return `models/${encodeURIComponent(model)}:${method}`
}
