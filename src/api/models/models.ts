import { defineEndpoint } from '../endpoint.ts'
import { listShape, MODEL_LIST, modelArea } from './model-shapes.ts'

/** The models that an API key may call. `docs/api.md: Models`. */
export const models = defineEndpoint({
  method: 'GET',
  path: '/v1/models',
  area: 'relay',
  areaOf: modelArea,
  access: 'key',
  keyIn: 'x-api-key',
  summary: 'The models that the API key may call',
  async handle({ token, user, exchange, models: lists, parts }) {
    return MODEL_LIST[listShape(exchange.request)](lists.list(parts.settings(), { token, user }))
  },
})
