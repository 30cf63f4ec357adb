import { type Fields, asNumber } from './fields.ts'
import type { Random } from './random.ts'

// Range from which an unmentioned number is chosen.
const RANGE = 20

/**
 * Chooses a number within the schema's bounds: one that the message mentions, else the default, else a small
 * one.
 */
export function numberMatchingSchema(
  schema: Fields,
  isInteger: boolean,
  message: string,
  random: Random,
): number {
  const min = Math.max(bound(schema.minimum, -Infinity), bound(schema.exclusiveMinimum, -Infinity))
  const max = Math.min(bound(schema.maximum, Infinity), bound(schema.exclusiveMaximum, Infinity))
  const multiple = asNumber(schema.multipleOf)
  const fits = (value: number): boolean =>
    value >= min &&
    value <= max &&
    value !== schema.exclusiveMinimum &&
    value !== schema.exclusiveMaximum &&
    (!isInteger || Number.isInteger(value)) &&
    (multiple === undefined || Math.abs(value / multiple - Math.round(value / multiple)) < 1e-9)
  const mentioned = (message.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number).find(fits)
  if (mentioned !== undefined) return mentioned
  const fallback = asNumber(schema.default)
  if (fallback !== undefined && fits(fallback)) return fallback
  const unit = multiple ?? (isInteger ? 1 : 0.1)
  const first = Math.round(Math.min(Math.max(unit, min), max) / unit)
  const around = (step: number): number[] =>
    Array.from({ length: RANGE }, (_, at) => rounded((first + step * at) * unit)).filter(fits)
  const [upwards, downwards] = [around(1), around(-1)]
  const candidates = upwards.length > 0 ? upwards : downwards
  // Bounds that contain no multiple of the unit allow only values between them.
  return candidates[Math.floor(random() * candidates.length)] ?? (min + max) / 2
}

function bound(value: unknown, none: number): number {
  return asNumber(value) ?? none
}

/** Removes the noise of binary fractions. */
function rounded(value: number): number {
  return Number(value.toPrecision(12))
}
