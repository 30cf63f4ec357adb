import { z } from 'zod'
import { type Decimal, decimalText } from '../../domain/decimal.ts'
import { type Options, type Setting, SETTINGS } from '../../domain/options.ts'
import { isWithin, TEXT_BYTES } from '../../domain/text-bytes.ts'
import { versionField } from '../expected-version.ts'
import { orTooLong, textField, tooLong } from '../text-fields.ts'
import { RATIO_OPTIONS } from './model-ratios.ts'
import { GROUP_OPTIONS } from './group-options.ts'
import { MODEL_OPTIONS } from './model-settings.ts'

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
