import { defineEndpoint } from '../endpoint.ts'
import { modelListBody } from './model-shapes.ts'

/** The models that a key of the signed-in account may call. `docs/api.md: Playground`. */
export const playgroundModels = defineEndpoint({
  method: 'GET',
  path: '/api/playground/models',
  area: 'relay',
  access: 'keyed-account',
  summary: "The models that a key of the account's own may call",
  handle: async ({ token, user, models, parts }) =>
    modelListBody('chat', models.list(parts.settings(), { token, user })),
})
