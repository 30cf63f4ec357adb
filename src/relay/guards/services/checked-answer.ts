import type { CallGuards } from '../call-guards.ts'
import { type Checked, callsWith, type ServiceChecks } from './service-checks.ts'

/**
 * Has services check texts of an answer as guards of texts leave them. Resolves to the texts as they go on to those
 * guards: as they came, unless a service has changed them. Rejects as `ServiceChecks.check` does.
 */
export async function checkedAnswer(
  checks: ServiceChecks,
  guards: CallGuards,
  answer: Checked,
): Promise<readonly string[]> {
  const screened = answer.texts.map((one) => {
    const text = guards.screened(one.text, one)
    // Records the match, and throws.
    return text ?? guards.checkAnswerText(one.text, one)
  })
  const texts = answer.texts.map((one, index) => ({ ...one, text: screened[index] ?? '' }))
  const calls = callsWith(answer.calls, answer.texts, screened)
  const checked = await checks.check({ ...answer, texts, calls })
  return answer.texts.map((one, index) => {
    const next = checked[index] ?? ''
    if (next === screened[index]) return one.text
    // The matches are not there any more when the text is checked again.
    if (screened[index] !== one.text) guards.checkAnswerText(one.text, one)
    return next
  })
}
