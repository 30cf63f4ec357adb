import { durationText, parseDuration } from '../units.ts'
import { type FieldType, jsonType, patternTextType, withRules, unchangedValue } from './field-types.ts'

/** A duration for a timer: milliseconds in the program, a text such as `5s` in JSON. */
export const durationType: FieldType<number, number, string> = {
  ...withRules(patternTextType(/^\d{1,15} ?(?:ms|s|m|h)$/, 'a duration such as 500ms, 5s, 20m or 1h'), {
    accepts: (given) => isTimer(parseDuration(given)),
    expected: 'a duration from 1ms to 596h',
  }),
  column: 'integer',
  encode: unchangedValue,
  decode: unchangedValue,
  fromJson: (given) => parseDuration(given)!,
  toJson: durationText,
}

/** A retention: milliseconds in the program, a text such as `10m` in JSON; `0` keeps nothing. */
export const retentionField = {
  ...jsonType<number>(),
  fromJson: (given: string) => (given === '0' ? 0 : parseDuration(given)!),
  toJson: (milliseconds: number) => (milliseconds === 0 ? '0' : durationText(milliseconds)),
} as unknown as FieldType<number, string, string> & { readonly json: 'any' }

/** Whether `setTimeout` accepts a delay of this many milliseconds. */
function isTimer(milliseconds: number | undefined): boolean {
  return milliseconds !== undefined && milliseconds > 0 && milliseconds < 2 ** 31
}
