import {
  boolean,
  type Check,
  checkSecret,
  checkValue,
  isInteger,
  isNumber,
  isText,
  isTexts,
  object,
  text,
} from '../field-check.ts'
import { asRecord } from '../json/record.ts'
import { type JsonSchema, withSchema } from '../with-schema.ts'

const secretText = checkSecret('a string', isText)
const typed: JsonSchema = { type: 'object', required: ['type'], properties: { type: isText.schema } }
const effort = { type: 'object', properties: { effort: { type: ['string', 'null'] } } }

/**
 * Fields that are checked only if a request is converted. In native requests, checking them is left to the
 * provider. Enumerations are open, because a provider may have further values.
 */
export const CONVERTED_CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  [
    'instructions',
    checkSecret(
      'a string',
      withSchema({ type: ['string', 'array'] }, (value: unknown) => isText(value) || Array.isArray(value)),
    ),
  ],
  ['stream_options', object],
  [
    'conversation',
    checkSecret(
      'a string or an object',
      withSchema(
        { type: ['string', 'object'] },
        (value: unknown) => isText(value) || asRecord(value) !== undefined,
      ),
    ),
  ],
  ['include', checkValue('an array of strings', isTexts)],
  ['parallel_tool_calls', boolean],
  ['temperature', checkValue('a number from 0 to 2', isNumber(0, 2))],
  ['top_p', checkValue('a number from 0 to 1', isNumber(0, 1))],
  ['top_logprobs', checkValue('an integer from 0 to 20', isInteger(0, 20))],
  [
    'tool_choice',
    checkSecret(
      'a string or an object with a type',
      withSchema(
        { anyOf: [isText.schema, typed] },
        (value: unknown) => isText(value) || isText(asRecord(value)?.['type']),
      ),
    ),
  ],
  ['text', object],
  ['reasoning', checkSecret('an object whose effort is a string', withSchema(effort, isReasoning))],
  ['truncation', text],
  [
    'metadata',
    checkSecret(
      'an object of strings',
      withSchema({ type: 'object', additionalProperties: isText.schema }, (value: unknown) =>
        Object.values(asRecord(value) ?? { not: 1 }).every(isText),
      ),
    ),
  ],
  ['prompt_cache_key', secretText],
  ['prompt_cache_retention', text],
  ['prompt_cache_options', object],
  ['safety_identifier', secretText],
  ['user', secretText],
  ['prompt', object],
])

function isReasoning(value: unknown): boolean {
  const reasoning = asRecord(value)
  return reasoning !== undefined && isText(reasoning['effort'] ?? '')
}
