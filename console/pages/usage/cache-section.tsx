import { Link } from '@tanstack/react-router'
import type { CacheBreak } from '../../../src/domain/cache-break.ts'
import type { Usage } from '../../api/usage.ts'
import {
  totalInputTokens,
  type CacheBreakCount,
  cacheBreakCounts,
  callsByCacheBreakCauser,
  shareReadFromCache,
} from '../../components/cache-breaks.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Figures } from '../../components/figures.tsx'
import type { SearchState } from '../../components/search-state.ts'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './usage-page.module.css'

/** What prompt caches saved in a period, and why they were not used by some calls. */
export function CacheSection({
  usage: { totals, breaks },
  linkOf,
}: {
  readonly usage: Usage
  /** Returns the filters of the page Logs that select the calls whose cache was not used for this reason. */
  readonly linkOf: (reason: CacheBreak) => SearchState
}) {
  const { caches, common } = useTexts()
  const { count, money, exact, percent } = useFormatters()
  const columns = useColumns(linkOf)
  const counted = cacheBreakCounts(breaks)
  const isUsed = totals.cached > 0 || totals.cache_write > 0 || counted.length > 0
  const share = shareReadFromCache(totals)
  const causers = callsByCacheBreakCauser(counted)
    .map(({ causer, calls }) => caches.counted(caches.causers[causer], count(calls)))
    .join(common.comma)
  return (
    <section aria-label={caches.title} className={classes['cache']}>
      <h2>{caches.title}</h2>
      {isUsed ? (
        <>
          <Figures
            figures={[
              {
                label: caches.read,
                value: percent(share ?? 0),
                note: caches.readOf(count(totals.cached), count(totalInputTokens(totals))),
              },
              {
                label: caches.saved,
                value: money(totals.cache_saved),
                title: exact(totals.cache_saved),
                note: caches.savedNote,
              },
              {
                label: caches.surcharge,
                value: money(totals.cache_surcharge),
                title: exact(totals.cache_surcharge),
                note: caches.surchargeNote,
              },
              {
                label: caches.breaks,
                value: count(counted.reduce((sum, { calls }) => sum + calls, 0)),
                note: counted.length === 0 ? caches.breaksNote : causers,
              },
            ]}
          />
          {counted.length === 0 ? (
            <p className={classes['note']}>{caches.noBreaks}</p>
          ) : (
            <DataTable
              label={caches.breaks}
              columns={columns}
              rows={counted}
              keyOf={({ reason }) => reason}
            />
          )}
        </>
      ) : (
        <p className={classes['note']}>{caches.unused}</p>
      )}
    </section>
  )
}

function useColumns(linkOf: (reason: CacheBreak) => SearchState): readonly Column<CacheBreakCount>[] {
  const { caches } = useTexts()
  const { count } = useFormatters()
  return [
    {
      key: 'reason',
      label: caches.reason,
      phone: 'title',
      sortBy: ({ reason }) => caches.reasons[reason],
      cell: ({ reason }) => (
        <Link to="/logs" search={linkOf(reason)}>
          {caches.reasons[reason]}
        </Link>
      ),
    },
    {
      key: 'causer',
      label: caches.causedBy,
      sortBy: ({ causer }) => caches.causers[causer],
      cell: ({ causer }) => caches.causers[causer],
    },
    {
      key: 'meaning',
      label: caches.meaning,
      phone: 'hidden',
      isOptional: true,
      cell: ({ reason }) => caches.meanings[reason],
    },
    {
      key: 'calls',
      label: caches.calls,
      isNumber: true,
      phone: 'value',
      sortBy: ({ calls }) => calls,
      cell: ({ calls }) => count(calls),
    },
  ]
}
