import { openResponse } from './client.ts'

const PATHS = {
  chat: '/api/playground/chat/completions',
  messages: '/api/playground/messages',
} as const

/**
 * Calls a model with one of the account's own keys, given by its id. The response is that of the model
 * endpoint.
 */
export function callWithKey(
  protocol: keyof typeof PATHS,
  keyId: number,
  body: object,
  signal: AbortSignal,
): Promise<Response> {
  return openResponse(PATHS[protocol], body, {
    headers: {
      'gateway-key': String(keyId),
      ...(protocol === 'messages' && { 'anthropic-version': '2023-06-01' }),
    },
    signal,
  })
}
