import { z } from 'zod'
import { type Decimal, decimalText } from '../../domain/decimal.ts'
import { versionOf } from '../../domain/object-version.ts'
import { type Options, type Setting, SETTINGS } from '../../domain/options.ts'
import { isWithin, TEXT_BYTES } from '../../domain/text-bytes.ts'
import { versionField } from '../expected-version.ts'
import { orTooLong, textField, tooLong } from '../input-fields.ts'
import type { AdministrationParts } from '../parts.ts'
import {
  GROUP_OPTIONS,
  MODEL_OPTIONS,
  modelRatios,
  modelSettingText,
  RATIO_OPTIONS,
  ratioText,
} from './option-mappings.ts'

/** An option, under its name in one-api and related gateways. */
export const optionSchema = z.object({
  key: z.string(),
  value: z.string(),
  /** The configuration file declares it, so it can be changed only there. */
  managed: z.boolean(),
  /** To be sent with `PUT`; changes with the value. */
  version: z.string(),
})

/** The live options, without secrets. */
export async function listOptions({
  store,
  settings,
  liveConfig,
}: Pick<AdministrationParts, 'store' | 'settings' | 'liveConfig'>): Promise<z.output<typeof optionSchema>[]> {
  const stored = await store.read('storedConfiguration')
  const { options, groups } = settings()
  const ratios = modelRatios(settings(), liveConfig, stored)
  const shown = [
    ...SETTINGS.map((setting) => ({
      key: setting.key,
      value: settingText(options, setting),
      managed: liveConfig.declared.options.has(setting.name),
    })),
    ...[...GROUP_OPTIONS].map(([key, option]) => ({ key, value: option.text(groups), managed: false })),
    ...[...RATIO_OPTIONS].map(([key, ratio]) => ({
      key,
      value: ratioText(ratios, ratio),
      managed: false,
    })),
    ...[...MODEL_OPTIONS].map(([key, setting]) => ({
      key,
      value: modelSettingText(settings(), setting),
      managed: false,
    })),
  ]
  return shown.map((one) => ({ ...one, version: versionOf([one.key, one.value]) }))
}

/** Options whose value is a JSON object by group or by model. */
const MAPPINGS = [...GROUP_OPTIONS.keys(), ...RATIO_OPTIONS.keys(), ...MODEL_OPTIONS.keys()]
const KEYS = [...SETTINGS.map(({ key }) => key), ...MAPPINGS]

/**
 * An option to set; any scalar `value` is read as text. The value of an option with a single value is plain
 * text.
 */
export const optionBody = z
  .object(
    {
      key: textField('expected the name of an option')
        .refine((key) => KEYS.includes(key), { error: `expected one of ${KEYS.join(', ')}` })
        .meta({ enum: KEYS }),
      value: z
        .union([textField('expected a text', TEXT_BYTES.list), z.number(), z.boolean()], {
          error: orTooLong('expected a text'),
        })
        .transform((value) => String(value)),
      version: versionField.nullish(),
    },
    { error: 'expected an object with key and value' },
  )
  .refine(({ key, value }) => !settingOf(key) || isWithin(value.trim(), TEXT_BYTES.plain), {
    path: ['value'],
    error: tooLong(TEXT_BYTES.plain),
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

/** JSON Schema of the value of an option; the schema of gateway.yaml checks the value. */
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

/** Text of the value of a setting. */
export function settingText(options: Options, { name }: Pick<Setting, 'name'>): string {
  const value: string | number | boolean | Decimal = options[name]
  return typeof value === 'object' ? decimalText(value) : String(value)
}

/** The setting with a key; undefined if there is none. */
export function settingOf(key: string): Setting | undefined {
  return SETTINGS.find((setting) => setting.key === key)
}
