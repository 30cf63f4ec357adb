import { z } from 'zod'
import { managedModels, managedModelSchema } from '../../management/models/managed-models.ts'
import { modelPriceBody, setModelPrice } from '../../management/models/set-model-price.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Models`. */
export const managedModelsEndpoint = defineEndpoint({
  method: 'GET',
  path: '/api/models',
  area: 'management',
  access: 'admin',
  summary: 'Every model with its price, where that comes from, and the channels that serve it',
  responseBody: z.array(managedModelSchema),
  handle: ({ parts }) => managedModels(parts),
})

/** Sets or removes the price of one model. */
export const setModelPriceEndpoint = defineEndpoint({
  method: 'PUT',
  path: '/api/models/price',
  area: 'management',
  access: 'root',
  summary: 'Sets the price of one model; null is the built-in one again',
  errorStatuses: [409],
  body: modelPriceBody,
  handle: ({ body, parts }) => setModelPrice(parts, body),
})
