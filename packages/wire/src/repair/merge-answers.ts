import type { Fields } from '../field.ts'
import { isJsonText } from '../json/exact-json.ts'
import { asRecord } from '../json/record.ts'

/** Members that say why an answer ended. Answers that lack them are faulty; others may lack what they like. */
const REASONS: ReadonlySet<string> = new Set(['finish_reason', 'stop_reason', 'finishReason'])

/**
 * Merges an answer as a provider wrote it with the same answer as its codec writes it. What the codec has and the
 * provider lacks is added, and what has another type is replaced; everything else stays as the provider wrote it. A
 * null counts as lacking. `noteFault` is called for each replaced value, and for a missing reason.
 */
export function mergeAnswers(given: Fields, written: Fields, noteFault: () => void): Fields {
  const merged: Record<string, unknown> = { ...given }
  for (const [name, value] of Object.entries(written)) {
    const before = given[name] ?? undefined
    if (before === undefined && REASONS.has(name) && value !== null) noteFault()
    merged[name] = before === undefined ? value : mergeValues(before, value, noteFault)
  }
  return merged
}

function mergeValues(given: unknown, written: unknown, noteFault: () => void): unknown {
  if (written === null || written === undefined) return given
  if (isNumber(given) && isNumber(written)) return given
  const [before, after] = [asRecord(given), asRecord(written)]
  if (before && after) return mergeAnswers(before, after, noteFault)
  if (Array.isArray(given) && Array.isArray(written))
    return given.length === written.length
      ? given.map((one, index) => mergeValues(one, written[index], noteFault))
      : given
  if (typeof given === typeof written && Array.isArray(given) === Array.isArray(written)) return given
  noteFault()
  return written
}

/** Whether a value is a number, or one with many digits. */
function isNumber(value: unknown): boolean {
  return typeof value === 'number' || (typeof value === 'object' && value !== null && isJsonText(value))
}
