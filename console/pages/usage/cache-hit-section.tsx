import type { UsagePoint } from '../../api/usage.ts'
import { Figures } from '../../components/figures.tsx'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './usage-page.module.css'

/**
 * How many calls of a period were answered from the cache of answers, and what that saved; shows nothing if
 * none were.
 */
export function CacheHitSection({ totals: { hits, hit_saved, requests } }: { readonly totals: UsagePoint }) {
  const { caches } = useTexts()
  const { count, money, exact, percent } = useFormatters()
  if (hits === 0) return null
  return (
    <section aria-label={caches.answers} className={classes['cache']}>
      <h2>{caches.answers}</h2>
      <Figures
        figures={[
          { label: caches.hits, value: count(hits), note: caches.hitsNote },
          {
            label: caches.hitShare,
            value: percent(requests === 0 ? 0 : hits / requests),
            note: caches.hitsOf(count(hits), count(requests)),
          },
          {
            label: caches.hitSaved,
            value: money(hit_saved),
            title: exact(hit_saved),
            note: caches.hitSavedNote,
          },
        ]}
      />
    </section>
  )
}
