import { pricing, pricingSchema } from '../../management/models/pricing.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Prices`. */
export const pricingEndpoint = defineEndpoint({
  method: 'GET',
  path: '/api/pricing',
  area: 'management',
  access: 'account',
  summary: 'Prices of the models that the account may call',
  responseBody: pricingSchema,
  envelope: 'own',
  handle: ({ user, parts }) => Promise.resolve(pricing(parts.settings(), user)),
})
