import { Button } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { type CallSession, SESSION_PAGE_SIZE, callSessionsQuery } from '../../api/sessions.ts'
import { totalInputTokens, shareReadFromCache } from '../../components/cache-breaks.ts'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { NoCalls } from '../../components/no-calls.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { Pager } from '../../components/pager.tsx'
import {
  LOG_PERIODS,
  type Period,
  periodFromUrl,
  type TimeRange,
  timeRangeOf,
} from '../../components/period.ts'
import { PeriodFilter } from '../../components/period-filter.tsx'
import { usePreferences } from '../../components/preferences.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { type SearchState, useSearchState } from '../../components/search-state.ts'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { valuesOfUrlText } from '../../components/url-values.ts'
import { TimeText } from '../../components/time-text.tsx'
import { Toolbar } from '../../components/toolbar.tsx'
import { ValueFilter } from '../../components/value-filter.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './sessions.module.css'
import { useCacheBreaksText } from './use-cache-breaks-text.ts'

const DEFAULT_PERIOD: Period = '7d'
const REFRESH_MS = 60_000

/**
 * The sessions of a period; the session with the newest call comes first. Administrators see those of all
 * users.
 */
export function SessionsPage() {
  const { sessions, common, logs } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const { timeZone } = usePreferences()
  const [search, setSearch] = useSearchState()
  const [openedAt] = useState(Date.now)
  const span = spanIn(search, openedAt, timeZone)
  const users = isAdmin ? valuesOfUrlText(search['user']) : []
  const page = Number(search['p'] ?? '1')
  const query = useQuery({
    ...callSessionsQuery(
      profile.id,
      {
        start_timestamp: span.from,
        end_timestamp: span.to === undefined ? undefined : span.to - 1,
        username: users,
      },
      page,
    ),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  })
  const columns = useColumns().filter(({ key }) => isAdmin || key !== 'user')
  const change = (changes: SearchState): void => setSearch({ ...changes, p: undefined })
  return (
    <>
      <PageHead title={sessions.title} above={<Link to="/logs">{logs.title}</Link>} />
      <p className={classes['hint']}>{sessions.hint}</p>
      <Toolbar>
        <PeriodFilter periods={LOG_PERIODS} otherwise={DEFAULT_PERIOD} search={search} onChange={change} />
        {isAdmin && (
          <ValueFilter
            label={sessions.user}
            field="user"
            scope="all"
            span={span}
            value={search['user']}
            isFirst
            onChange={(user) => change({ user })}
          />
        )}
      </Toolbar>
      <QueryResult query={query} rows={12}>
        {({ items, total }) =>
          items.length === 0 ? (
            users.length > 0 ? (
              <EmptyState text={sessions.emptyFiltered}>
                <Button variant="default" onClick={() => change({ user: undefined })}>
                  {common.clearFilters}
                </Button>
              </EmptyState>
            ) : (
              <NoCalls text={sessions.empty} />
            )
          ) : (
            <>
              <DataTable
                label={sessions.table}
                columns={columns}
                rows={items}
                keyOf={({ session }) => session}
                isStale={query.isPlaceholderData}
                areOpened
              />
              <Pager
                page={page}
                pageSize={SESSION_PAGE_SIZE}
                total={total}
                onPage={(next) => setSearch({ p: String(next) })}
                labels={{ previous: logs.newer, next: logs.older }}
              />
              <p className={classes['hint']}>{common.zone(timeZone)}</p>
            </>
          )
        }
      </QueryResult>
    </>
  )
}

/**
 * The period in the page's URL, cut to full minutes so that rendering the page again does not change the
 * request.
 */
function spanIn(search: SearchState, nowMs: number, timeZone: string): TimeRange {
  const now = Math.floor(nowMs / 60_000) * 60
  return timeRangeOf(periodFromUrl(LOG_PERIODS, search, DEFAULT_PERIOD), search, now, timeZone)
}

function useColumns(): readonly Column<CallSession>[] {
  const { sessions } = useTexts()
  const { count, percent } = useFormatters()
  const breaksText = useCacheBreaksText()
  const number = (key: string, label: string, of: (session: CallSession) => number): Column<CallSession> => ({
    key,
    label,
    isNumber: true,
    cell: (session) => count(of(session)),
  })
  const money = (key: 'quota' | 'cache_saved' | 'cache_surcharge', label: string): Column<CallSession> => ({
    key,
    label,
    isNumber: true,
    phone: key === 'quota' ? 'value' : 'line',
    isOptional: key !== 'quota',
    cell: (session) => <MoneyText quota={session[key]} />,
  })
  return [
    {
      key: 'session',
      label: sessions.session,
      phone: 'title',
      cell: ({ session }) => (
        <Link to="/sessions/$id" params={{ id: session }} data-row-link={session}>
          {session}
        </Link>
      ),
    },
    { key: 'user', label: sessions.user, cell: ({ username }) => <TruncatedText text={username} /> },
    { key: 'last', label: sessions.last, cell: ({ last_at }) => <TimeText at={last_at} /> },
    number('calls', sessions.calls, ({ calls }) => calls),
    { ...number('input', sessions.input, totalInputTokens), isOptional: true },
    {
      key: 'share',
      label: sessions.share,
      isNumber: true,
      cell: (session) => {
        const share = shareReadFromCache(session)
        return share === undefined ? '–' : percent(share)
      },
    },
    money('quota', sessions.cost),
    money('cache_saved', sessions.saved),
    money('cache_surcharge', sessions.surcharge),
    {
      key: 'breaks',
      label: sessions.breaks,
      cell: ({ breaks }) => <TruncatedText text={breaksText(breaks) || '–'} />,
    },
  ]
}
