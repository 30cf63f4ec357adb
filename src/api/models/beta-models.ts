import { defineEndpoint, type JsonEndpoint } from '../endpoint.ts'
import { type ModelShape, modelListBody } from './model-shapes.ts'

/** The model list at a path with a fixed shape. `docs/api.md: Models`. */
export const alternateModels = fixedShape('/v1beta/models', 'alternate')

/** The model list for clients of the alternate vendor's chat endpoint. */
export const alternateChatModels = fixedShape('/v1beta/openai/models', 'chat')

function fixedShape(path: string, shape: ModelShape): JsonEndpoint {
  return defineEndpoint({
    method: 'GET',
    path,
    area: 'relay',
    access: 'key',
    keyIn: 'alternate',
    summary: `The models that the API key may call, always in the ${shape} shape`,
    async handle({ token, user, models, parts }) {
      return modelListBody(shape, models.list(parts.settings(), { token, user }))
    },
  })
}
