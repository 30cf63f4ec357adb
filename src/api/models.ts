import { modelWithoutPrefix } from '@sluice/wire/gemini'
import { z } from 'zod'
import { GatewayError } from '../errors.ts'
import {
  managedModels,
  managedModelSchema,
  modelPriceBody,
  modelPricesBody,
  setModelPrice,
  setModelPrices,
} from '../management/models/managed-models.ts'
import { pricing, pricingSchema } from '../management/models/pricing.ts'
import type { ListedModel } from '../call/model-lists.ts'
import { truncateName } from '../call/truncate-name.ts'
import {
  defineEndpoint,
  defineAccountEndpoint,
  defineAdminEndpoint,
  defineRootUserEndpoint,
  type JsonEndpoint,
} from './endpoint.ts'
import {
  modelEntryFormat,
  modelListFormat,
  MODEL_ENTRY_IN_FORMAT,
  MODEL_LIST_IN_FORMAT,
  apiAreaOfModelRequest,
  modelListBody,
  type ModelListFormat,
} from './model-list-formats.ts'

/**
 * Sent in addition to the model list to clients that state `client_version`, such as Codex, which report an
 * error without this member. It is empty, because an entry would replace what the client knows about a model,
 * including its instructions.
 */
const CATALOGUE = { models: [] }

/**
 * A model's name may contain slashes, literal or as `%2F`, so `:id*` matches the rest of the path and is
 * percent-decoded.
 */
const PATH = '/v1/models/:id*'

/** Parameters of a path that names a model. */
const modelParams = z.object({
  id: z.string().refine(isDecodable, 'expected a percent-encoding of UTF-8'),
})

/** Endpoints that list and manage models: `docs/api.md: Models`, and `docs/administration.md: Models`. */
export const MODEL_ENDPOINTS: readonly JsonEndpoint[] = [
  defineEndpoint({
    method: 'GET',
    path: '/v1/models',
    area: 'relay',
    areaOf: apiAreaOfModelRequest,
    otherAreas: ['messages'],
    access: 'key',
    keyIn: 'model-list',
    summary: 'The models that the API key may call',
    query: z.object({ client_version: z.string().optional() }),
    async handle({ token, user, query, exchange, models: lists, services }) {
      const list = lists.list(services.settings(), { token, user })
      const shape = modelListFormat(exchange.request)
      if (query.client_version === undefined) return modelListBody(shape, list)
      return { ...MODEL_LIST_IN_FORMAT[shape](list), ...CATALOGUE }
    },
  }),
  defineEndpoint({
    method: 'GET',
    path: PATH,
    area: 'relay',
    areaOf: apiAreaOfModelRequest,
    otherAreas: ['messages'],
    access: 'key',
    keyIn: 'any',
    summary: 'One model that the API key may call',
    params: modelParams,
    async handle({ token, user, params: { id }, exchange, models, services }) {
      const name = decodeURIComponent(id)
      const found = requireModel(models.find(services.settings(), { token, user }, name), name)
      return MODEL_ENTRY_IN_FORMAT[modelEntryFormat(exchange.request)](found)
    },
  }),
  // Always responds with 501: models are deleted in the configuration.
  defineEndpoint({
    method: 'DELETE',
    path: PATH,
    area: 'relay',
    areaOf: apiAreaOfModelRequest,
    otherAreas: ['messages'],
    access: 'key',
    keyIn: 'any',
    summary: 'Not implemented',
    errorStatuses: [501],
    succeeds: false,
    handle: () => Promise.reject(new GatewayError('not_implemented', 'deleting a model is not implemented')),
  }),
  defineEndpoint({
    method: 'GET',
    path: '/api/playground/models',
    area: 'relay',
    access: 'keyed-account',
    summary: "The models that a key of the account's own may call",
    handle: async ({ token, user, models, services }) =>
      modelListBody('chat', models.list(services.settings(), { token, user })),
  }),
  fixedShape('/v1beta/models', 'alternate'),
  // For clients of Gemini's OpenAI-compatible endpoint.
  fixedShape('/v1beta/openai/models', 'chat'),
  defineEndpoint({
    method: 'GET',
    path: '/v1beta/models/:id*',
    area: 'gemini',
    access: 'key',
    keyIn: 'alternate',
    summary: 'One model that the API key may call, always in the alternate shape',
    params: modelParams,
    // oxlint-disable-next-line typescript/require-await
    async handle({ token, user, params: { id }, models, services }) {
      const name = modelWithoutPrefix(decodeURIComponent(id))
      return MODEL_ENTRY_IN_FORMAT.alternate(
        requireModel(models.find(services.settings(), { token, user }, name), name),
      )
    },
  }),
  defineAdminEndpoint('GET', '/api/models', {
    summary: 'Every model with its price, where that comes from, and the channels that serve it',
    responseBody: z.array(managedModelSchema),
    handle: ({ services }) => managedModels(services),
  }),
  defineRootUserEndpoint('PUT', '/api/models/price', {
    summary: 'Sets the price of one model; null is the built-in one again',
    errorStatuses: [409],
    body: modelPriceBody,
    responseBody: managedModelSchema.nullable(),
    handle: async ({ body, services }) => (await setModelPrice(services, body)) ?? null,
  }),
  defineRootUserEndpoint('PUT', '/api/models/prices', {
    summary: 'Sets the prices of several models, all or none',
    errorStatuses: [409],
    body: modelPricesBody,
    handle: ({ body, services }) => setModelPrices(services, body),
  }),
  defineAccountEndpoint('GET', '/api/pricing', {
    summary: 'Prices of the models that the account may call',
    responseBody: pricingSchema,
    envelope: 'own',
    handle: ({ user, services }) => Promise.resolve(pricing(services.settings(), user, services.modelEnds)),
  }),
]

/** An endpoint for the model list whose path alone chooses the format. */
function fixedShape(path: string, shape: ModelListFormat): JsonEndpoint {
  return defineEndpoint({
    method: 'GET',
    path,
    area: 'relay',
    access: 'key',
    keyIn: 'alternate',
    summary: `The models that the API key may call, always in the ${shape} shape`,
    async handle({ token, user, models, services }) {
      return modelListBody(shape, models.list(services.settings(), { token, user }))
    },
  })
}

/** Returns the model; throws `unknown_model` if it was not found. */
function requireModel(found: ListedModel | undefined, name: string): ListedModel {
  if (found) return found
  throw new GatewayError('unknown_model', `there is no model ${truncateName(name)} that this API key may use`)
}

function isDecodable(encoded: string): boolean {
  try {
    decodeURIComponent(encoded)
    return true
  } catch {
    return false
  }
}
