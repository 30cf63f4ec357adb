import { GatewayError } from '../errors.ts'
import { embedRequestSchema } from '@sluice/wire/gemini/embed'
import { geminiRequestSchema, modelWithoutPrefix } from '@sluice/wire/gemini'
import type { Request } from '../http/request.ts'
import { geminiCountTokens } from '../call/dialects/gemini/count-tokens.ts'
import type { CallEndpoint } from './endpoint.ts'
import type { PathParams } from './paths.ts'

const COMMON = {
  method: 'POST',
  area: 'gemini',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'alternate',
} as const satisfies Partial<CallEndpoint>

/** Gemini's API versions; all methods exist in both. */
const VERSIONS = ['/v1beta', '/v1']

/** Methods of Gemini's models: `docs/api.md: Gemini`. */
export const GEMINI_ENDPOINTS: readonly CallEndpoint[] = VERSIONS.flatMap((version) => [
  {
    ...COMMON,
    path: `${version}/models/:model*:generateContent`,
    summary: 'An answer to contents, whole',
    requestSchema: geminiRequestSchema,
    handle: (exchange, caller, { relay }, params) =>
      relay.generate({ model: modelIn(params), form: 'whole' }, exchange, caller),
  },
  {
    ...COMMON,
    path: `${version}/models/:model*:streamGenerateContent`,
    summary: 'An answer to contents, as events with `alt=sse` in the query, else as one array',
    requestSchema: geminiRequestSchema,
    contentTypes: ['text/event-stream', 'application/json'],
    queryFields: { alt: { type: 'string', enum: ['sse', 'json'] } },
    otherAreas: ['gemini-array'],
    areaOf: (request) => (wantsEvents(request) ? 'gemini' : 'gemini-array'),
    handle: (exchange, caller, { relay }, params) => {
      const form = wantsEvents(exchange.request) ? 'events' : 'array'
      return relay.generate({ model: modelIn(params), form }, exchange, caller)
    },
  },
  ...(['embedContent', 'batchEmbedContents'] as const).map(
    (method): CallEndpoint => ({
      ...COMMON,
      path: `${version}/models/:model*:${method}`,
      summary: method === 'embedContent' ? 'The vector of a content' : 'The vectors of several contents',
      requestSchema: () => embedRequestSchema(method),
      handle: (exchange, caller, { relay }, params) =>
        relay.generate({ model: modelIn(params), form: method }, exchange, caller),
    }),
  ),
  {
    ...COMMON,
    path: `${version}/models/:model*:countTokens`,
    summary: 'Counts the tokens of contents',
    repeats: 'past the cache',
    requestSchema: () => ({ type: 'object' }),
    // The gateway counts if the upstream cannot, or has no such path.
    hiddenStatuses: [404, 529],
    handle: (exchange, caller, { relay }, params) =>
      relay.countTokens(geminiCountTokens(modelIn(params)), exchange, caller),
  },
])

/** The model that the path names, with or without `models/`, possibly percent-encoded. */
function modelIn({ model = '' }: PathParams): string {
  try {
    return modelWithoutPrefix(decodeURIComponent(model))
  } catch {
    throw new GatewayError(
      'invalid_request',
      `Invalid model in the path: expected a percent-encoding of UTF-8.`,
    )
  }
}

function wantsEvents({ url }: Request): boolean {
  const query = url.indexOf('?')
  return query !== -1 && new URLSearchParams(url.slice(query)).get('alt') === 'sse'
}
