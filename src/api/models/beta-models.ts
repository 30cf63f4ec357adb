import { modelOf } from '../../protocols/gemini/index.ts'
import { defineEndpoint, type JsonEndpoint } from '../endpoint.ts'
import { modelParams, requireModel } from './model.ts'
import { MODEL_ENTRY, type ModelShape, modelListBody } from './model-shapes.ts'

/** The model list in a fixed shape, chosen by the path. `docs/api.md: Models`. */
export const alternateModels = fixedShape('/v1beta/models', 'alternate')

/** The model list for clients of the alternate vendor's chat endpoint. */
export const alternateChatModels = fixedShape('/v1beta/openai/models', 'chat')

/** One model in a fixed shape. `docs/api.md: Models`. */
export const alternateModel = defineEndpoint({
  method: 'GET',
  path: '/v1beta/models/:id*',
  area: 'gemini',
  access: 'key',
  keyIn: 'alternate',
  summary: 'One model that the API key may call, always in the alternate shape',
  params: modelParams,
  // oxlint-disable-next-line typescript/require-await
  async handle({ token, user, params: { id }, models, parts }) {
    const name = modelOf(decodeURIComponent(id))
    return MODEL_ENTRY.alternate(requireModel(models.find(parts.settings(), { token, user }, name), name))
  },
})

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
