import type { CacheBreakCounts } from '../../../src/domain/cache-break.ts'
import { cacheBreakCounts } from '../../components/cache-breaks.ts'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/**
 * The reasons why prompt caches were not used, with the number of calls: `channel 1, tools 2`; empty if there
 * are none.
 */
export function useCacheBreaksText(): (breaks: CacheBreakCounts) => string {
  const { caches, common } = useTexts()
  const { count } = useFormatters()
  return (breaks) =>
    cacheBreakCounts(breaks)
      .map(({ reason, calls }) => caches.counted(caches.short[reason], count(calls)))
      .join(common.comma)
}
