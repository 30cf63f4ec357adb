import { chatRequestSchema, completionRequestSchema } from '@sluice/wire/chat'
import { embeddingsRequestSchema } from '@sluice/wire/embeddings'
import { countRequestSchema, messagesRequestSchema } from '@sluice/wire/messages'
import { moderationsRequestSchema } from '@sluice/wire/moderations'
import { rerankRequestSchema } from '@sluice/wire/rerank'
import { responsesRequestSchema } from '@sluice/wire/responses'
import { messagesCountTokens } from '../call/dialects/messages/count-tokens.ts'
import { responsesCountTokens } from '../call/dialects/responses/input-tokens.ts'
import type { CallEndpoint } from './endpoint.ts'
import { GEMINI_ENDPOINTS } from './gemini.ts'
import { MEDIA_ENDPOINTS } from './media.ts'

const COMMON = { method: 'POST', area: 'relay', kind: 'raw', access: 'api-key', keyIn: 'bearer' } as const
const MESSAGES = { ...COMMON, area: 'messages', keyIn: 'x-api-key' } as const

const WHOLE = ['application/json']
const WHOLE_OR_STREAMED = ['application/json', 'text/event-stream']

/** Endpoint for chat completions in OpenAI's format: `docs/api.md: Chat completions`. */
const chatCompletions: CallEndpoint = {
  ...COMMON,
  path: '/v1/chat/completions',
  summary: 'A chat completion, whole or streamed',
  requestSchema: chatRequestSchema,
  contentTypes: WHOLE_OR_STREAMED,
  handle: (exchange, caller, { relay }) => relay.call('chat', exchange, caller),
}

/** Endpoint for messages in Anthropic's format: `docs/api.md: Messages`. */
const messages: CallEndpoint = {
  ...MESSAGES,
  path: '/v1/messages',
  summary: 'A response to a conversation, whole or streamed',
  requestSchema: messagesRequestSchema,
  contentTypes: WHOLE_OR_STREAMED,
  handle: (exchange, caller, { relay }) => relay.call('messages', exchange, caller),
}

/** Endpoint for responses in the format of OpenAI's Responses API: `docs/api.md: Responses`. */
export const RESPONSES_ENDPOINT: CallEndpoint = {
  ...COMMON,
  path: '/v1/responses',
  summary:
    'A response, whole or streamed, also with the tools of this gateway; a GET with an upgrade opens a WebSocket for the same requests',
  requestSchema: responsesRequestSchema,
  contentTypes: WHOLE_OR_STREAMED,
  handle: (exchange, caller, { relay }) => relay.call('responses', exchange, caller),
}

/** Checks a request for a response without making the call: for a frame of a WebSocket that generates nothing. */
export const RESPONSE_CHECK_ENDPOINT: CallEndpoint = {
  ...RESPONSES_ENDPOINT,
  async handle(exchange, caller, { relay, webSockets }) {
    const routes = await relay.check('responses', exchange, caller)
    exchange.response.writeHead(webSockets.statusOfCheck(routes), {}).end()
  },
}

/** Endpoints that change the connection to a WebSocket, by the path of the requests that are sent on it. */
export const WEB_SOCKET_ENDPOINTS: readonly CallEndpoint[] = [
  {
    ...COMMON,
    method: 'GET',
    hasEffect: true,
    path: RESPONSES_ENDPOINT.path,
    summary: 'Opens a WebSocket for responses',
    handle: (exchange, caller, { webSockets }) =>
      webSockets.upgrade(exchange, caller, RESPONSES_ENDPOINT.path),
  },
]

/** Endpoint for embeddings of texts: `docs/api.md: Embeddings`. */
const embeddings: CallEndpoint = {
  ...COMMON,
  path: '/v1/embeddings',
  summary: 'Vectors of texts',
  requestSchema: embeddingsRequestSchema,
  contentTypes: WHOLE,
  handle: (exchange, caller, { relay }) => relay.call('embeddings', exchange, caller),
}

/** Cohere's two API versions. They differ in the type of documents that Cohere's client libraries declare. */
const RERANK_PATHS = [
  ['/v1/rerank', 'rerank'],
  ['/v2/rerank', 'rerank v2'],
] as const

/** Paths for images and audio that the console's playground can call. */
const PLAYED_MEDIA = new Set(['/v1/images/generations', '/v1/audio/speech'])

/**
 * The endpoints that the console's playground can call, each with the path prefix to be replaced by
 * `/api/playground/`.
 */
const PLAYED: readonly (readonly [CallEndpoint, string])[] = [
  [chatCompletions, '/v1/'],
  [messages, '/v1/'],
  [RESPONSES_ENDPOINT, '/v1/'],
  [embeddings, '/v1/'],
  ...MEDIA_ENDPOINTS.filter(({ path }) => PLAYED_MEDIA.has(path)).map((one) => [one, '/v1/'] as const),
  ...GEMINI_ENDPOINTS.filter(({ path }) => /^\/v1beta\/.*:(?:g|streamG)enerateContent$/.test(path)).map(
    (endpoint) => [endpoint, '/v1beta/'] as const,
  ),
]

/** Endpoints of model calls. Each one is described in the section of docs/api.md with its name. */
export const CALL_ENDPOINTS: readonly CallEndpoint[] = [
  chatCompletions,
  {
    ...COMMON,
    path: '/v1/completions',
    summary: 'A completion of a prompt, whole or streamed',
    // A request with messages is treated as a chat completion sent to an older path.
    requestSchema: () => ({ anyOf: [completionRequestSchema(), chatRequestSchema()] }),
    contentTypes: WHOLE_OR_STREAMED,
    handle: (exchange, caller, { relay }) => relay.call('completions', exchange, caller),
  },
  embeddings,
  {
    ...COMMON,
    path: '/v1/moderations',
    summary: 'Whether texts and images may harm',
    requestSchema: moderationsRequestSchema,
    contentTypes: WHOLE,
    handle: (exchange, caller, { relay }) => relay.call('moderations', exchange, caller),
  },
  messages,
  {
    ...MESSAGES,
    path: '/v1/messages/count_tokens',
    summary: 'Counts the tokens of a conversation',
    repeats: 'past the cache',
    requestSchema: countRequestSchema,
    // The gateway counts if the upstream cannot, or has no such path.
    hiddenStatuses: [404, 529],
    handle: (exchange, caller, { relay }) => relay.countTokens(messagesCountTokens, exchange, caller),
  },
  RESPONSES_ENDPOINT,
  {
    ...COMMON,
    path: '/v1/responses/input_tokens',
    summary: 'How many tokens the input of a response has',
    repeats: 'past the cache',
    requestSchema: responsesRequestSchema,
    // The gateway counts if the upstream cannot, or has no such path.
    hiddenStatuses: [404, 529],
    handle: (exchange, caller, { relay }) => relay.countTokens(responsesCountTokens, exchange, caller),
  },
  {
    ...COMMON,
    path: '/v1/responses/compact',
    summary: 'A conversation, compacted by its upstream',
    repeats: 'past the cache',
    requestSchema: responsesRequestSchema,
    contentTypes: WHOLE,
    handle: (exchange, caller, { relay }) => relay.compact(exchange, caller),
  },
  ...RERANK_PATHS.map(
    ([path, endpoint]): CallEndpoint => ({
      ...COMMON,
      path,
      area: 'rerank',
      summary: 'Documents in the order of their relevance to a query',
      requestSchema: rerankRequestSchema,
      contentTypes: WHOLE,
      handle: (exchange, caller, { relay }) => relay.call(endpoint, exchange, caller),
    }),
  ),
]

/** Calls of a signed-in user that are charged to one of the user's API keys. `docs/api.md: Playground`. */
export const PLAYGROUND_ENDPOINTS: readonly CallEndpoint[] = PLAYED.map(([endpoint, prefix]) => ({
  ...endpoint,
  path: endpoint.path.replace(prefix, '/api/playground/'),
  access: 'keyed-account',
  summary: `${endpoint.summary}, by a key of the account's own`,
}))
