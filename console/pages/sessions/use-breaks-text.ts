import type { BreakCounts } from '../../../src/domain/cache-break.ts'
import { countedBreaks } from '../../components/cache-breaks.ts'
import { useFormats } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/**
 * The reasons why prompt caches were not used, with the number of calls: `channel 1, tools 2`; empty if there
 * are none.
 */
export function useBreaksText(): (breaks: BreakCounts) => string {
  const { caches } = useTexts()
  const { count } = useFormats()
  return (breaks) =>
    countedBreaks(breaks)
      .map(({ reason, calls }) => caches.counted(caches.short[reason], count(calls)))
      .join(caches.separator)
}
