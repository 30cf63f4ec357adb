import type { ApiKey } from './keys.ts'

/** The models that a key may call; undefined where it may call all models. */
export function allowedModels({ model_limits_enabled, model_limits }: ApiKey): string[] | undefined {
  return model_limits_enabled ? model_limits.split(',').filter(Boolean) : undefined
}
