import type { Model, Settings } from '../../domain/settings.ts'
import type { Json, JsonObject } from '../../domain/records/field-types.ts'
import { GatewayError } from '../../errors.ts'

/** A setting of a model beside its price, by its key in gateway.yaml. */
export type ModelSetting = 'fallback' | 'balance'

/** The options that are such settings, by model. */
export const MODEL_OPTIONS = new Map<string, ModelSetting>([
  ['ModelFallback', 'fallback'],
  ['ModelBalance', 'balance'],
])

/** One setting of all models that have it, as a JSON object by model. */
export function modelSettingText({ models }: Settings, setting: ModelSetting): string {
  const members = models.declared.toSorted().flatMap((name): [string, Json][] => {
    const { fallback, balance } = models.get(name)
    if (setting === 'fallback') return fallback.length > 0 ? [[name, fallback]] : []
    return balance === 'weight' ? [] : [[name, balance]]
  })
  return JSON.stringify(Object.fromEntries(members))
}

/** A value that an option gives for a model. Throws `invalid_request` where it is no text nor a list. */
export function settingJson(key: string, name: string, value: unknown): string | readonly string[] {
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value
  throw new GatewayError(
    'invalid_request',
    `${key}: expected a text or a list of texts for ${JSON.stringify(name)}`,
  )
}

/** Whether a model has a setting in this form. */
export function isSameSetting(model: Model, setting: ModelSetting, json: Json): boolean {
  return JSON.stringify(model[setting]) === JSON.stringify(json)
}

/** A stored entry's value as the object that it is. */
export function asObject(value: Json): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}
