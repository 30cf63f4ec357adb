import { z } from 'zod'
import { GatewayError } from '../../errors.ts'
import type { ListedModel } from '../../relay/model-lists.ts'
import { truncatedName } from '../../relay/truncated-name.ts'
import { defineEndpoint } from '../endpoint.ts'
import { entryShape, MODEL_ENTRY, modelArea } from './model-shapes.ts'

/**
 * A model's name may contain slashes, literal or as `%2F`, so its segment is percent-decoded; other paths are
 * not.
 */
const PATH = '/v1/models/:id*'

/** Parameters of a path that names a model. */
export const modelParams = z.object({
  id: z.string().refine(isDecodable, 'expected a percent-encoding of UTF-8'),
})

/** `docs/api.md: Models`. */
export const model = defineEndpoint({
  method: 'GET',
  path: PATH,
  area: 'relay',
  areaOf: modelArea,
  access: 'key',
  keyIn: 'any',
  summary: 'One model that the API key may call',
  params: modelParams,
  async handle({ token, user, params: { id }, exchange, models, parts }) {
    const name = decodeURIComponent(id)
    const found = requireModel(models.find(parts.settings(), { token, user }, name), name)
    return MODEL_ENTRY[entryShape(exchange.request)](found)
  },
})

/** Always responds with 501: `docs/api.md: Models`. Models are deleted in the configuration. */
export const deleteModel = defineEndpoint({
  method: 'DELETE',
  path: PATH,
  area: 'relay',
  areaOf: modelArea,
  access: 'key',
  keyIn: 'any',
  summary: 'Not implemented',
  errorStatuses: [501],
  succeeds: false,
  handle: () => Promise.reject(new GatewayError('not_implemented', 'deleting a model is not implemented')),
})

/** Returns the model; throws `unknown_model` if it was not found. */
export function requireModel(found: ListedModel | undefined, name: string): ListedModel {
  if (found) return found
  throw new GatewayError(
    'unknown_model',
    `there is no model ${truncatedName(name)} that this API key may use`,
  )
}

function isDecodable(encoded: string): boolean {
  try {
    decodeURIComponent(encoded)
    return true
  } catch {
    return false
  }
}
