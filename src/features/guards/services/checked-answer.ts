import type { CallGuards } from '../call-guards.ts'
import { type ContentToCheck, callsWithArguments, type ServiceChecks } from './service-checks.ts'

/**
 * Has services check texts of an answer after applying the text guards to them. Resolves to the texts that
 * are given to those guards next: unchanged, unless a service has changed them. Rejects like
 * `ServiceChecks.check`.
 */
export async function checkedAnswer(
  checks: ServiceChecks,
  guards: CallGuards,
  answer: ContentToCheck,
): Promise<readonly string[]> {
  const screened = answer.texts.map((one) => {
    const text = guards.screened(one.text, one)
    // A text that is blocked is checked once more, which records the match and throws.
    return text ?? guards.checkAnswer(one.text, one)
  })
  const texts = answer.texts.map((one, index) => ({ ...one, text: screened[index] ?? '' }))
  const calls = callsWithArguments(answer.calls, answer.texts, screened)
  const checked = await checks.check({ ...answer, texts, calls })
  return answer.texts.map((one, index) => {
    const next = checked[index] ?? ''
    if (next === screened[index]) return one.text
    // The matches are recorded now, because a later check of the changed text no longer finds them.
    if (screened[index] !== one.text) guards.checkAnswer(one.text, one)
    return next
  })
}
