import type { Channel } from '../../domain/records/channel.ts'
import { answerPath } from '@sluice/wire/gemini'
import { capabilitiesOf } from '@sluice/wire/model-capabilities'
import { embedUpstream } from '../../upstreams/embed-upstream.ts'
import type { WireRequest } from '../../upstreams/provider.ts'
import { MESSAGES_VERSION, modelsRequest } from './models-request.ts'
import type { TestedEndpoint, TestedModel } from './tested-model.ts'

/** Request in a dialect; `chat` unless it states another. */
type Written = Pick<WireRequest, 'path'> &
  Partial<Pick<WireRequest, 'protocol' | 'headers'>> & { readonly body: object | Buffer }

const MESSAGES = [{ role: 'user', content: 'hi' }]

/** Parameters with which models make their cheapest picture. */
const CHEAPEST: readonly (readonly [RegExp, object])[] = [
  [/gpt-image/i, { quality: 'low' }],
  [/dall-e-2/i, { size: '256x256' }],
]

const REQUESTS: Record<
  Exclude<TestedEndpoint, 'models'>,
  (upstreamModel: string, requested: string, channel: Channel) => Written
> = {
  chat: (model, requested) => ({
    path: '/chat/completions',
    body: { model, messages: MESSAGES, [capabilitiesOf(model, requested).maximumField]: 1 },
  }),
  messages: (model) => ({
    protocol: 'messages',
    path: '/messages',
    headers: ['anthropic-version', MESSAGES_VERSION],
    body: { model, messages: MESSAGES, max_tokens: 1 },
  }),
  responses: (model) => ({
    protocol: 'responses',
    path: '/responses',
    // The minimum that upstreams accept.
    body: { model, input: 'hi', max_output_tokens: 16, store: false },
  }),
  gemini: (model) => ({
    protocol: 'gemini',
    path: answerPath(model, false),
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], generationConfig: { maxOutputTokens: 1 } },
  }),
  converse: () => ({
    protocol: 'converse',
    path: '/converse',
    body: { messages: [{ role: 'user', content: [{ text: 'hi' }] }], inferenceConfig: { maxTokens: 1 } },
  }),
  rerank: (model) => ({
    protocol: 'rerank',
    path: '/rerank',
    body: { model, query: 'hi', documents: ['hi'], top_n: 1 },
  }),
  embeddings(model, requested, channel) {
    const upstream = embedUpstream(channel, requested)
    if (!upstream) return { path: '/embeddings', body: { model, input: 'hi' } }
    const { form, protocol, path } = upstream
    const texts = { texts: ['hi'], dimensions: undefined, task: undefined }
    return { protocol, path, body: form.requests(texts, model, new Set())[0].body }
  },
  images: (model) => ({
    path: '/images/generations',
    body: { model, prompt: 'a dot', n: 1, ...CHEAPEST.find(([pattern]) => pattern.test(model))?.[1] },
  }),
  speech: (model) => ({ path: '/audio/speech', body: { model, input: 'hi', voice: 'alloy' } }),
  moderations: (model) => ({ path: '/moderations', body: { model, input: 'hi' } }),
}

/** Builds the smallest request for the endpoint of a model: one token, one document, one picture. */
export function testRequest(channel: Channel, { model, endpoint }: TestedModel): WireRequest {
  if (endpoint === 'models') return modelsRequest(channel)
  const upstreamModel = channel.model_mapping.get(model) ?? model
  const { protocol = 'chat', path, headers = [], body } = REQUESTS[endpoint](upstreamModel, model, channel)
  return {
    protocol,
    path,
    headers: [...headers, 'accept', endpoint === 'speech' ? '*/*' : 'application/json'],
    body: Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)),
    upstreamModel,
  }
}
