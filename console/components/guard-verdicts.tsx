import type { GuardVerdict } from '../../src/domain/guard.ts'
import { useTexts } from '../locales/use-texts.tsx'
import { useFormatters } from './session.tsx'
import { StateMark, type StateSeverity } from './state-mark.tsx'

const TONES: Readonly<Record<GuardVerdict, StateSeverity>> = {
  allowed: 'ok',
  flagged: 'warn',
  redacted: 'warn',
  blocked: 'bad',
  failed_passed: 'warn',
  failed_blocked: 'bad',
}

/** What a guard decided about a call, and how many matches it found. */
export function VerdictMark({ verdict, count }: { readonly verdict: GuardVerdict; readonly count: number }) {
  const { guards: t } = useTexts()
  const formats = useFormatters()
  const word = t.verdicts[verdict]
  return (
    <StateMark
      tone={TONES[verdict]}
      word={count === 0 ? word : t.counted(word, formats.count(count), count)}
    />
  )
}
