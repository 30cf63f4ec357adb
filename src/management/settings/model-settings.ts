import { type Model, MODEL_SETTINGS } from '../../domain/records/model.ts'
import type { Settings } from '../../domain/settings.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { fieldsWith, type NamesWith } from '../../domain/records/record.ts'
import { GatewayError } from '../../errors.ts'

const { fields } = MODEL_SETTINGS

/** A setting of a model other than its price, by its key in gateway.yaml. */
export type ModelSetting = NamesWith<typeof fields, 'edit'>

/** The options that are such settings, by model. */
export const MODEL_OPTIONS = new Map(
  Object.entries(fieldsWith(fields, 'edit')).map(([name, { as }]): [string, ModelSetting] => [
    as,
    name as ModelSetting,
  ]),
)

/** One setting of all models that have it, as a JSON object by model. */
export function modelSettingText({ models }: Settings, setting: ModelSetting): string {
  const members = models.declared.toSorted().flatMap((name): [string, Json][] => {
    const model = models.get(name)
    return isSameSetting(model, setting, fields[setting].default) ? [] : [[name, model[setting]]]
  })
  return JSON.stringify(Object.fromEntries(members))
}

/** A value that an option gives for a model. Throws `invalid_request` if it is neither a text nor a list. */
export function settingJson(key: string, name: string, value: unknown): string | readonly string[] {
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value
  throw new GatewayError(
    'invalid_request',
    `${key}: expected a text or a list of texts for ${JSON.stringify(name)}`,
  )
}

/** Whether a model has a setting with this value. */
export function isSameSetting(model: Model, setting: ModelSetting, json: Json): boolean {
  return JSON.stringify(model[setting]) === JSON.stringify(json)
}

/** The value of a stored entry as an object; empty if it is not one. */
export function asObject(value: Json): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}
