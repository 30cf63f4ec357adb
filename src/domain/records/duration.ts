import { durationText, parseDuration } from '../units.ts'
import { type FieldType, textMatching, withRules, unchangedValue } from './field-types.ts'

/** A duration of a timer in milliseconds, a text such as `5s` in JSON. */
export const duration: FieldType<number, number, string> = {
  ...withRules(textMatching(/^\d{1,15} ?(?:ms|s|m|h)$/, 'a duration such as 500ms, 5s, 20m or 1h'), {
    accepts: (given) => isTimer(parseDuration(given)),
    expected: 'a duration from 1ms to 596h',
  }),
  column: 'integer',
  encode: unchangedValue,
  decode: unchangedValue,
  fromJson: (given) => parseDuration(given)!,
  toJson: durationText,
}

/** Whether a delay is one that `setTimeout` has. */
function isTimer(milliseconds: number | undefined): boolean {
  return milliseconds !== undefined && milliseconds > 0 && milliseconds < 2 ** 31
}
