import type { Channel } from '../../domain/records/channel.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { DialectRequest } from '../../upstreams/provider.ts'

/** The version of the messages protocol; `docs/api.md: Versioning`. */
export const MESSAGES_VERSION = '2023-06-01'

/** Path and headers of the list of models, by dialect. One page holds more models than any vendor serves. */
const MODEL_LISTS: Record<ProtocolName, { readonly path: string; readonly headers?: readonly string[] }> = {
  chat: { path: '/models' },
  messages: { path: '/models?limit=1000', headers: ['anthropic-version', MESSAGES_VERSION] },
  responses: { path: '/models' },
  gemini: { path: '/models?pageSize=1000' },
  converse: { path: '/models' },
  rerank: { path: '/models' },
}

/** Builds the request for the list of models, in the channel's first dialect. */
export function modelsRequest({ protocol: [protocol = 'chat'] }: Channel): DialectRequest {
  const { path, headers = [] } = MODEL_LISTS[protocol]
  return {
    method: 'GET',
    protocol,
    path,
    headers: [...headers, 'accept', 'application/json'],
    body: Buffer.alloc(0),
  }
}
