import { alternateKey, headerText } from '../accounts/authentication/key-from-request.ts'
import type { Endpoint } from '../domain/endpoints.ts'
import { retirementTimeMs, type ModelRetirement } from '../domain/model-retirement.ts'
import type { ListedModel } from '../call/model-lists.ts'
import type { Request } from '../http/request.ts'
import type { ApiArea } from './envelopes.ts'

/** The formats of model lists; `docs/api.md: Models`. */
export type ModelListFormat = 'chat' | 'messages' | 'alternate'

/** A placeholder in Unix seconds, because the creation time of a model is unknown. */
const CREATED = 1_626_777_600
const CREATED_AT = '2021-07-20T10:40:00Z'
/** The owner of a model without a known vendor. */
const UNKNOWN_VENDOR = 'custom'

/** The methods by which the gateway serves a model at an endpoint, named as in Gemini's model lists. */
const METHODS: { readonly [At in Endpoint]?: readonly string[] } = {
  gemini: ['generateContent', 'countTokens'],
  embeddings: ['embedContent', 'batchEmbedContents'],
}

/**
 * Fields that clients of the messages protocol expect of every model, but whose values the gateway does not
 * know.
 */
const UNKNOWN_FACTS = {
  capabilities: null,
  deprecated_at: null,
  lifecycle: 'active',
  line: null,
  max_input_tokens: null,
  max_tokens: null,
  retires_at: null,
}

export const MODEL_ENTRY_IN_FORMAT: Record<ModelListFormat, (model: ListedModel) => object> = {
  chat: ({ id, vendor, endpointTypes, endpoints, end }) => ({
    id,
    object: 'model',
    created: CREATED,
    owned_by: vendor ?? UNKNOWN_VENDOR,
    supported_endpoint_types: endpointTypes,
    endpoints,
    ...shutdown(end),
  }),
  messages: ({ id, end }) => ({
    type: 'model',
    id,
    display_name: id,
    created_at: CREATED_AT,
    ...UNKNOWN_FACTS,
    ...(end && {
      deprecated_at: shownTime(Math.min(end.knownMs, retirementTimeMs(end))),
      lifecycle: 'deprecated',
      retires_at: shownTime(retirementTimeMs(end)),
    }),
    ...shutdown(end),
  }),
  alternate: ({ id, endpoints, end }) => ({
    name: `models/${id}`,
    displayName: id,
    supportedGenerationMethods: endpoints.flatMap((endpoint) => METHODS[endpoint] ?? []),
    ...shutdown(end),
  }),
}

/** The field with the day on which the model is shut down; the same in all formats. */
function shutdown(end: ModelRetirement | undefined): object | undefined {
  return end && { shutdown_date: end.on }
}

/** A Unix time in milliseconds as Anthropic writes it, without fractions of a second. */
function shownTime(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}

/** A whole model list, in each format. */
export const MODEL_LIST_IN_FORMAT: Record<ModelListFormat, (models: readonly ListedModel[]) => object> = {
  chat: (models) => ({ success: true, object: 'list', data: models.map(MODEL_ENTRY_IN_FORMAT.chat) }),
  messages: (models) => ({
    data: models.map(MODEL_ENTRY_IN_FORMAT.messages),
    first_id: models.at(0)?.id ?? null,
    has_more: false,
    last_id: models.at(-1)?.id ?? null,
  }),
  alternate: (models) => ({ models: models.map(MODEL_ENTRY_IN_FORMAT.alternate), nextPageToken: null }),
}

const bodies = new WeakMap<readonly ListedModel[], Map<ModelListFormat, Buffer>>()

/** The response body with a list in a format. It is rendered once and then cached with the list. */
export function modelListBody(shape: ModelListFormat, models: readonly ListedModel[]): Buffer {
  let shapes = bodies.get(models)
  if (!shapes) bodies.set(models, (shapes = new Map()))
  let body = shapes.get(shape)
  if (!body) shapes.set(shape, (body = Buffer.from(JSON.stringify(MODEL_LIST_IN_FORMAT[shape](models)))))
  return body
}

/**
 * Chooses the format of a model list by the request's headers. Clients of the messages protocol send
 * `anthropic-version`, some of them with the key as a bearer token. The header `vendor-version` selects their
 * format only together with `x-api-key`. A key in `x-goog-api-key` selects Gemini's format. `docs/api.md:
 * Models`.
 */
export function modelListFormat(request: Request): ModelListFormat {
  if (headerText(request, 'anthropic-version') !== undefined) return 'messages'
  const isNamed = headerText(request, 'vendor-version') !== undefined
  if (headerText(request, 'x-api-key') !== undefined) return isNamed ? 'messages' : 'chat'
  return headerText(request, 'x-goog-api-key') === undefined ? 'chat' : 'alternate'
}

/**
 * Chooses the format of a single model like `modelListFormat`, but an API key in any place where Gemini's clients
 * send it (`alternateKey`) also selects Gemini's format.
 */
export function modelEntryFormat(request: Request): ModelListFormat {
  const shape = modelListFormat(request)
  return shape === 'chat' && alternateKey(request) !== undefined ? 'alternate' : shape
}

/** The area of requests to `/v1/models`, which decides the format of errors. */
export function apiAreaOfModelRequest(request: Request): ApiArea {
  return modelListFormat(request) === 'messages' ? 'messages' : 'relay'
}
