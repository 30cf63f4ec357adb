import { z } from 'zod'
import { decimalText } from '../../domain/decimal.ts'
import { asObject, type Json } from '../../domain/json.ts'
import { requireVersion } from '../../domain/object-version.ts'
import { type Setting, SETTINGS } from '../../domain/options.ts'
import { type RatioName, type Ratios, ratiosJson, ratiosOf, readRatios } from '../../domain/ratios.ts'
import type { StoredConfiguration, StoredSetting } from '../../domain/settings.ts'
import { fitsInBytes, TEXT_BYTE_LIMITS } from '../../domain/text-length.ts'
import { versionField, addCurrentObject, repeatIfChanged } from '../expected-version.ts'
import { unionErrorMessage, textField, tooLongMessage } from '../input-fields.ts'
import type { AdministrationServices } from '../services.ts'
import { parseDecimalMapping, parseImagePriceMapping, parseJsonMapping } from './decimal-map.ts'
import { listOptions, optionsOf, settingOf, settingText } from './list-options.ts'
import {
  type StoredSettingChange,
  GROUP_OPTIONS,
  isSameRatio,
  isSameSetting,
  managedByFileError,
  MODEL_OPTIONS,
  modelRatios,
  type ModelSetting,
  type OptionState,
  RATIO_OPTIONS,
  SECTION_OPTIONS,
  changesOfSectionOption,
  parseModelSetting,
} from './option-mappings.ts'

/**
 * Sets an option. Throws `invalid_request` if gateway.yaml would not accept its value, and `managed_by_file`
 * if gateway.yaml declares a different value. Resolves when the change is in effect.
 */
export async function setOption(
  services: AdministrationServices,
  { key, value, version }: z.output<typeof optionBody>,
): Promise<void> {
  const { store, settings, liveConfig } = services
  const reader = readerOf(key)
  const isKey = (option: { readonly key: string }): boolean => option.key === key
  const change = (): Promise<void> => {
    let changes: readonly StoredSettingChange[] = []
    let expected: readonly StoredSettingChange[] = []
    return liveConfig.change(
      (stored) => {
        requireVersion(version ?? undefined, optionsOf(services, stored).find(isKey)?.version ?? '')
        changes = reader(value, { settings: settings(), liveConfig, stored })
        // The write fails if these values have changed, because another node may set the option meanwhile.
        expected = changes.map((one) => ({ ...one, value: storedValue(stored, one) }))
        return { ...stored, entries: changed(stored.entries, changes) }
      },
      () => store.write('setStoredSettings', { changes, expected }),
    )
  }
  await addCurrentObject(
    () => repeatIfChanged(version, change),
    async () => (await listOptions(services)).find(isKey),
  )
}

function storedValue(
  { entries }: StoredConfiguration,
  { section, name }: StoredSettingChange,
): Json | undefined {
  return entries.find((entry) => entry.section === section && entry.name === name)?.value
}

function readerOf(key: string): (value: string, state: OptionState) => StoredSettingChange[] {
  const scalar = settingOf(key)
  if (scalar) return (value, state) => scalarChange(scalar, value.trim(), state)
  if (SECTION_OPTIONS.has(key)) return (value, state) => changesOfSectionOption(key, value.trim(), state)
  const groups = GROUP_OPTIONS.get(key)
  if (groups) return (value, state) => groups.changes(value, state, key)
  const ratio = RATIO_OPTIONS.get(key)
  if (ratio) {
    return (value, state) =>
      ratioChanges(
        key,
        ratio,
        ratio === 'images' ? parseImagePriceMapping(key, value) : parseDecimalMapping(key, value),
        state,
      )
  }
  return (value, state) => modelChanges(key, MODEL_OPTIONS.get(key)!, value, state)
}

function scalarChange(
  setting: Setting,
  value: string,
  { settings, liveConfig }: OptionState,
): StoredSettingChange[] {
  const { key, name } = setting
  if (liveConfig.declared.options.has(name)) {
    if (settingText(settings.options, setting) === value) return []
    throw managedByFileError(key, `options.${name}`)
  }
  return [{ section: 'options', name, value }]
}

// A stored ratio that is missing from the option's new value is removed. Prices in gateway.yaml and built-in
// prices still apply.
function ratioChanges(
  key: string,
  ratio: RatioName,
  given: ReadonlyMap<string, Ratios[RatioName]>,
  { settings, liveConfig, stored }: OptionState,
): StoredSettingChange[] {
  const now = modelRatios(settings, liveConfig, stored)
  const entries = new Map(
    stored.entries.flatMap(({ section, name, value }) =>
      section === 'ratios' ? [[name, value] as const] : [],
    ),
  )
  const names = new Set([...entries.keys(), ...given.keys()])
  return [...names].flatMap((name): StoredSettingChange[] => {
    const value = given.get(name)
    const entry = entries.get(name) ?? null
    const { price } = settings.models.get(name)
    // Setting a ratio of a model that has an exact price converts that price to ratios.
    const before = price && 'exact' in asObject(entry) ? ratiosOf(price) : readRatios(entry)
    if (value && isSameRatio(ratio, now.get(name), { [ratio]: value })) return []
    if (value && liveConfig.declared.models.has(name)) throw managedByFileError(key, `models.${name}`)
    if (!value && !before[ratio]) return []
    return [{ section: 'ratios', name, value: ratiosJson({ ...before, [ratio]: value }) }]
  })
}

// A model that is missing from the option's new value loses the setting, unless gateway.yaml declares the
// model.
function modelChanges(
  key: string,
  setting: ModelSetting,
  value: string,
  { settings, liveConfig, stored }: OptionState,
): StoredSettingChange[] {
  const given = parseJsonMapping(key, value)
  const entries = new Map(
    stored.entries.flatMap(({ section, name, value }) =>
      section === 'models' ? [[name, asObject(value)] as const] : [],
    ),
  )
  const names = new Set([...given.keys(), ...entries.keys()])
  return [...names].flatMap((name): StoredSettingChange[] => {
    const wanted = given.get(name)
    const json = wanted === undefined ? undefined : parseModelSetting(key, name, wanted)
    if (json !== undefined && isSameSetting(settings.models.get(name), setting, json)) return []
    if (json !== undefined && liveConfig.declared.models.has(name))
      throw managedByFileError(key, `models.${name}`)
    const { [setting]: before, ...others } = entries.get(name) ?? {}
    if (json === undefined && before === undefined) return []
    const next = json === undefined ? others : { ...others, [setting]: json }
    return [{ section: 'models', name, value: Object.keys(next).length > 0 ? next : undefined }]
  })
}

function changed(
  entries: readonly StoredSetting[],
  changes: readonly StoredSettingChange[],
): StoredSetting[] {
  const identity = ({ section, name }: Pick<StoredSetting, 'section' | 'name'>): string =>
    `${section} ${name}`
  const touched = new Set(changes.map(identity))
  const set = changes.flatMap(({ value, ...one }) => (value === undefined ? [] : [{ ...one, value }]))
  return [...entries.filter((one) => !touched.has(identity(one))), ...set]
}

/** Options whose value is a JSON object with an entry for each group or model. */
const MAPPINGS = [...GROUP_OPTIONS.keys(), ...RATIO_OPTIONS.keys(), ...MODEL_OPTIONS.keys()]
const KEYS = [...SETTINGS.map(({ key }) => key), ...SECTION_OPTIONS.keys(), ...MAPPINGS]

/**
 * Input with an option to be set. A number or a boolean in `value` is read as text. Options with a single
 * value take plain text, all others JSON.
 */
export const optionBody = z
  .object(
    {
      key: textField('expected the name of an option')
        .refine((key) => KEYS.includes(key), { error: `expected one of ${KEYS.join(', ')}` })
        .meta({ enum: KEYS }),
      value: z
        .union([textField('expected a text', TEXT_BYTE_LIMITS.list), z.number(), z.boolean()], {
          error: unionErrorMessage('expected a text'),
        })
        .transform((value) => String(value)),
      version: versionField.nullish(),
    },
    { error: 'expected an object with key and value' },
  )
  .refine(({ key, value }) => !settingOf(key) || fitsInBytes(value.trim(), TEXT_BYTE_LIMITS.plain), {
    path: ['value'],
    error: tooLongMessage(TEXT_BYTE_LIMITS.plain),
  })
  .meta({
    anyOf: [
      ...SETTINGS.map((setting) => valueOf({ const: setting.key }, schemaOf(setting))),
      valueOf({ enum: MAPPINGS }, { type: 'string', contentMediaType: 'application/json' }),
    ],
  })

function valueOf(key: object, value: object): object {
  return { properties: { key, value } }
}

/** The JSON Schema of an option's value, for documentation; the schema of gateway.yaml checks the value. */
function schemaOf(setting: Setting): object {
  switch (setting.type) {
    case 'integer':
      return {
        type: ['integer', 'string'],
        minimum: setting.min,
        maximum: setting.max,
        default: setting.default,
      }
    case 'decimal':
      return { type: ['number', 'string'], default: decimalText(setting.default) }
    case 'flag':
      return { type: ['boolean', 'string'], default: setting.default }
    case 'choice':
      return { type: 'string', enum: setting.choices, default: setting.default }
  }
}
