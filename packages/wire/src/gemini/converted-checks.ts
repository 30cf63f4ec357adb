import {
  type Check,
  checkSecret,
  isInteger,
  isNumber,
  isTexts,
  object,
  refuse,
  text,
} from '../field-check.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'
import { type ValueTest, withSchema } from '../with-schema.ts'
import { either, snakeCase } from './spelling.ts'

/** An array, or a single object in place of it. */
export const list = checkSecret(
  'an array or an object',
  withSchema(
    { type: ['array', 'object'] },
    (value: unknown) => Array.isArray(value) || asRecord(value) !== undefined,
  ),
)

/** Registers each check under both spellings of its field. */
export function spelled(fields: readonly (readonly [string, Check])[]): ReadonlyMap<string, Check> {
  return new Map(
    fields.flatMap(([name, check]) => [name, snakeCase(name)].map((spelling) => [spelling, check] as const)),
  )
}

/**
 * Fields that are checked only if a request is converted. In native requests, checking them is left to the
 * provider.
 */
export const CONVERTED_CHECKS: ReadonlyMap<string, Check> = spelled([
  ['systemInstruction', object],
  ['toolConfig', object],
  ['safetySettings', list],
  ['cachedContent', text],
])

/** Rule for a field of `generationConfig`, which has two spellings. */
export type ConfigRule = readonly [name: string, expected: string, test: ValueTest]

/**
 * Fields of `generationConfig` that are checked only if a request is converted. Numbers may have fractions
 * where the provider's types allow them.
 */
export const CONVERTED_RULES: readonly ConfigRule[] = [
  ['temperature', 'a number from 0 to 2', isNumber(0, 2)],
  ['topP', 'a number from 0 to 1', isNumber(0, 1)],
  ['topK', 'a number from 0 to 1000', isNumber(0, 1000)],
  ['stopSequences', 'an array of strings', isTexts],
  ['seed', 'an integer from -2147483648 to 2147483647', isInteger(-(2 ** 31), 2 ** 31 - 1)],
  ['presencePenalty', 'a number from -2 to 2', isNumber(-2, 2)],
  ['frequencyPenalty', 'a number from -2 to 2', isNumber(-2, 2)],
]

/** Checks fields of `generationConfig`, which is at `path`. Throws `invalid_request` that names the field. */
export function checkConfigRules(config: Fields, path: string, rules: readonly ConfigRule[]): void {
  for (const [name, expected, test] of rules) {
    const value = either(config, name)
    if (value !== undefined && !test(value))
      refuse(`${path}.${name}`, expected, typeof value === 'number' ? String(value) : 'something else')
  }
}
