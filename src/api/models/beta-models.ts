import { defineEndpoint, type JsonEndpoint } from '../endpoint.ts'
import { MODEL_LIST, type ModelShape } from './model-shapes.ts'

/** The same list at paths whose shape is fixed. `docs/api.md: Models`. */
export const alternateModels = fixedShape('/v1beta/models', 'alternate')

/** For callers of the alternate vendor's other protocol. */
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
      return MODEL_LIST[shape](models.list(parts.settings(), { token, user }))
    },
  })
}
