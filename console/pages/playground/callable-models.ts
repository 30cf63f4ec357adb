import { allowedModels, type ApiKey } from '../../api/keys.ts'
import type { PricedModel } from '../../api/models.ts'

const WORKS = 1

/** The keys with which calls can be made. */
export function usableKeys(keys: readonly ApiKey[]): readonly ApiKey[] {
  return keys.filter(({ status }) => status === WORKS)
}

/** The models that a key can call for a conversation. */
export function callableModels(
  models: readonly PricedModel[],
  key: ApiKey | undefined,
): readonly PricedModel[] {
  const conversing = models.filter(
    ({ endpoints, perCall, output }) => endpoints.includes('chat') && perCall === undefined && output > 0,
  )
  const allowed = key && allowedModels(key)
  return allowed ? conversing.filter(({ name }) => allowed.includes(name)) : conversing
}
