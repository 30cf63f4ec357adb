import { type Decimal, decimalText } from '../../domain/decimal.ts'
import { type Options, type Setting, SETTINGS } from '../../domain/options.ts'

/** Text of the value of a setting. */
export function settingText(options: Options, { name }: Pick<Setting, 'name'>): string {
  const value: string | number | boolean | Decimal = options[name]
  return typeof value === 'object' ? decimalText(value) : String(value)
}

/** The setting with a key; undefined if there is none. */
export function settingOf(key: string): Setting | undefined {
  return SETTINGS.find((setting) => setting.key === key)
}
