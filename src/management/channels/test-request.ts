import type { Channel, ProtocolName } from '../../domain/channel.ts'
import { answerPath } from '../../protocols/gemini/index.ts'
import { capabilitiesOf } from '../../protocols/model-capabilities.ts'
import type { DialectRequest } from '../../upstreams/provider.ts'

/** The version of the messages protocol; `docs/api.md: Versioning`. */
export const MESSAGES_VERSION = '2023-06-01'

const MESSAGES = [{ role: 'user', content: 'hi' }]

const REQUESTS: Record<
  ProtocolName,
  (model: string, requested: string) => Omit<DialectRequest, 'protocol' | 'body'> & { body: object }
> = {
  chat: (model, requested) => ({
    path: '/chat/completions',
    headers: [],
    body: { model, messages: MESSAGES, [capabilitiesOf(model, requested).maximumField]: 1 },
  }),
  messages: (model) => ({
    path: '/messages',
    headers: ['anthropic-version', MESSAGES_VERSION],
    body: { model, messages: MESSAGES, max_tokens: 1 },
  }),
  responses: (model) => ({
    path: '/responses',
    headers: [],
    // The least that upstreams accept.
    body: { model, input: 'hi', max_output_tokens: 16, store: false },
  }),
  gemini: (model) => ({
    path: answerPath(model, false),
    headers: [],
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], generationConfig: { maxOutputTokens: 1 } },
  }),
  converse: () => ({
    path: '/converse',
    headers: [],
    body: { messages: [{ role: 'user', content: [{ text: 'hi' }] }], inferenceConfig: { maxTokens: 1 } },
  }),
  rerank: (model) => ({
    path: '/rerank',
    headers: [],
    body: { model, query: 'hi', documents: ['hi'], top_n: 1 },
  }),
}

/** Builds a request for one token of a model, or for the ranking of one document, in the first dialect. */
export function testRequest(channel: Channel, model: string): DialectRequest {
  const [protocol = 'chat'] = channel.protocols
  const upstreamModel = channel.modelMapping.get(model) ?? model
  const { path, headers, body } = REQUESTS[protocol](upstreamModel, model)
  return {
    protocol,
    path,
    headers: [...headers, 'accept', 'application/json'],
    body: Buffer.from(JSON.stringify(body)),
    upstreamModel,
  }
}
