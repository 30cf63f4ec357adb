import { z } from 'zod'
import { defineEndpoint } from '../endpoint.ts'
import { listShape, MODEL_LIST, modelArea, modelListBody } from './model-shapes.ts'

/**
 * An empty catalogue, sent in addition to the list to clients that state `client_version`, such as Codex. An
 * entry would replace what the client knows about a model, including its instructions; without the member the
 * client reports an error.
 */
const CATALOGUE = { models: [] }

/** The models that an API key may call. `docs/api.md: Models`. */
export const models = defineEndpoint({
  method: 'GET',
  path: '/v1/models',
  area: 'relay',
  areaOf: modelArea,
  access: 'key',
  keyIn: 'model-list',
  summary: 'The models that the API key may call',
  query: z.object({ client_version: z.string().optional() }),
  async handle({ token, user, query, exchange, models: lists, parts }) {
    const list = lists.list(parts.settings(), { token, user })
    const shape = listShape(exchange.request)
    if (query.client_version === undefined) return modelListBody(shape, list)
    return { ...MODEL_LIST[shape](list), ...CATALOGUE }
  },
})
