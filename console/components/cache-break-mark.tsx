import type { CacheBreak } from '../../src/domain/cache-break.ts'
import { useTexts } from '../locales/use-texts.tsx'
import { CACHE_BREAK_CAUSERS, type CacheBreakCauser } from './cache-breaks.ts'
import { StateMark, type StateSeverity } from './state-mark.tsx'

const TONES: Readonly<Record<CacheBreakCauser, StateSeverity>> = {
  gateway: 'bad',
  client: 'warn',
  provider: 'off',
}

/**
 * Says why a call did not use the provider's prompt cache, and who caused that, if the reason does not say
 * it.
 */
export function CacheBreakMark({ reason }: { readonly reason: CacheBreak }) {
  const { caches } = useTexts()
  const causer = CACHE_BREAK_CAUSERS[reason]
  const words = caches.reasons[reason]
  return (
    <StateMark
      tone={TONES[causer]}
      word={causer === 'provider' ? words : caches.because(words, caches.causers[causer])}
      title={caches.meanings[reason]}
    />
  )
}
