import { Button } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { CallScope } from '../../api/calls.ts'
import { type Usage, type UsageQuery, usageCsvUrl, usageQuery } from '../../api/usage.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { NoCalls } from '../../components/no-calls.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { usePreferences } from '../../components/preferences.ts'
import { type SearchState, useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { SessionsButton } from '../../components/sessions-button.tsx'
import { useNow } from '../../components/use-now.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { Breakdown } from './breakdown.tsx'
import { CacheSection } from './cache-section.tsx'
import { Charts } from './charts.tsx'
import { CacheHitSection } from './cache-hit-section.tsx'
import { RefusedCalls } from './refused-calls.tsx'
import type { SeriesName } from './chart-rows.ts'
import { Totals } from './totals.tsx'
import {
  logSearchOfCacheBreak,
  usageQueryOf,
  searchOfSeries,
  type Grouping,
  groupingOf,
  periodSearch,
  logSearchOfInterval,
} from './usage-filter.ts'
import { UsageFilters } from './usage-filters.tsx'
import { useSeriesNames } from './use-series-names.ts'
import classes from './usage-page.module.css'

const REFRESH_MS = 60_000

/** The usage of a period, by time and by model, key, user, channel or group. */
export function UsagePage() {
  const { usage } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const { timeZone, language } = usePreferences()
  const [search, setSearch] = useSearchState()
  const now = useNow()
  const scope: CallScope = isAdmin ? 'all' : 'own'
  const params = usageQueryOf(search, scope, now, timeZone, language)
  const query = useQuery({
    ...usageQuery(profile.id, scope, params),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  })
  const grouping = groupingOf(search, scope)
  const named = useSeriesNames()
  return (
    <>
      <PageHead title={usage.title}>
        <SessionsButton search={{ ...periodSearch(search), user: search['user'] }} />
        <Button
          component="a"
          variant="default"
          href={usageCsvUrl(scope, params)}
          download
          leftSection={<IconDownload size={16} aria-hidden />}
        >
          {usage.csv}
        </Button>
      </PageHead>
      <UsageFilters scope={scope} span={params} search={search} onChange={setSearch} />
      <QueryResult query={query} rows={12}>
        {(found) => (
          <Sums
            usage={named(found, grouping)}
            scope={scope}
            grouping={grouping}
            isStale={query.isPlaceholderData}
            params={params}
            search={search}
            onSearch={setSearch}
            onFilter={(one, by = grouping) => setSearch(searchOfSeries(search, scope, by, one))}
          />
        )}
      </QueryResult>
      <RefusedCalls scope={scope} params={params} />
    </>
  )
}

function Sums({
  usage,
  scope,
  grouping,
  params,
  search,
  isStale,
  onSearch,
  onFilter,
}: {
  readonly usage: Usage
  readonly scope: CallScope
  readonly grouping: Grouping
  readonly params: UsageQuery
  readonly search: SearchState
  readonly isStale: boolean
  readonly onSearch: (changes: SearchState) => void
  readonly onFilter: (one: SeriesName, by?: Grouping) => void
}) {
  const { usage: texts, common } = useTexts()
  const isEmpty = usage.totals.requests === 0 && usage.totals.failed === 0
  return (
    <>
      <Totals now={usage.totals} before={usage.previous} />
      {isEmpty ? (
        <NoCalls text={texts.empty} />
      ) : (
        <>
          <Charts
            usage={usage}
            scope={scope}
            params={params}
            grouping={grouping}
            search={search}
            onSearch={onSearch}
            linkOf={(at) => logSearchOfInterval(search, at, params)}
            onFilter={onFilter}
          />
          <CacheSection usage={usage} linkOf={(reason) => logSearchOfCacheBreak(search, reason)} />
          <CacheHitSection totals={usage.totals} />
          <Breakdown usage={usage} grouping={grouping} isStale={isStale} onFilter={onFilter} />
        </>
      )}
      <p className={classes['note']}>
        {common.zone(usage.tz)}. {usage.exact ? '' : `${texts.inexact} `}
        {texts.refused}
      </p>
    </>
  )
}
