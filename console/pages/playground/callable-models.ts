import { isForUnsupportedEndpoint } from '../../../src/domain/endpoints.ts'
import { allowedModels } from '../../api/allowed-models.ts'
import type { ApiKey } from '../../api/keys.ts'
import type { PricedModel } from '../../api/models.ts'
import { MEDIA_ENDPOINTS, type MediaEndpoint } from './answer.ts'

const WORKS = 1

/** The keys with which calls can be made now. */
export function usableKeys(keys: readonly ApiKey[]): readonly ApiKey[] {
  return keys.filter(({ status }) => status === WORKS)
}

/** The endpoint of a model that is not for conversations; undefined for other models. */
export function mediaEndpointOf({ endpoints }: PricedModel): MediaEndpoint | undefined {
  return endpoints.includes('chat') ? undefined : MEDIA_ENDPOINTS.find((medium) => endpoints.includes(medium))
}

/**
 * The models that a key can call: first those for conversations, of which those without a price of output come last, because
 * embeddings and others may be among them; then those for pictures, speech and embeddings.
 */
export function callableModels(
  models: readonly PricedModel[],
  key: ApiKey | undefined,
): readonly PricedModel[] {
  const conversing = models
    .filter(({ name, endpoints }) => endpoints.includes('chat') && !isForUnsupportedEndpoint(name))
    .toSorted((one, other) => Number(one.output === 0) - Number(other.output === 0))
  const others = models.filter((model) => mediaEndpointOf(model) !== undefined)
  const all = [...conversing, ...others]
  const allowed = key && allowedModels(key)
  return allowed ? all.filter(({ name }) => allowed.includes(name)) : all
}
