import { Button } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { firstWordsQuery, type FirstWords } from '../../api/content.ts'
import { type CallSession, SESSION_PAGE_SIZE, callSessionsQuery } from '../../api/sessions.ts'
import { shareReadFromCache } from '../../components/cache-breaks.ts'
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
import { useLastPage } from '../../components/use-last-page.ts'
import { useNow } from '../../components/use-now.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { ContentSearchForm, ContentSearchResult, HowToKeep } from './content-search.tsx'
import classes from './sessions.module.css'
import { useCacheBreaksText } from './use-cache-breaks-text.ts'

const DEFAULT_PERIOD: Period = '7d'
const REFRESH_MS = 60_000

/**
 * The sessions of a period; the session with the newest call comes first. Administrators see those of all
 * users.
 */
export function SessionsPage() {
  const { sessions, common, content } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const { count } = useFormatters()
  const { timeZone, language } = usePreferences()
  const [search, setSearch] = useSearchState()
  const span = spanIn(search, useNow(), timeZone, language)
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
  useLastPage(query, SESSION_PAGE_SIZE)
  const found = query.data?.items ?? []
  const [withOthers, setWithOthers] = useState(false)
  const words = useQuery({
    ...firstWordsQuery(
      profile.id,
      found.map(({ first_call }) => first_call),
      withOthers,
    ),
    placeholderData: keepPreviousData,
  })
  const columns = useColumns(words.data?.items).filter(({ key }) => isAdmin || key !== 'user')
  const unread = words.data?.unread ?? 0
  const hidden = words.data?.may_read_others === true && words.data.items.some(({ text }) => text === null)
  const change = (changes: SearchState): void => setSearch({ ...changes, p: undefined })
  return (
    <>
      <PageHead title={sessions.title} />
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
      <ContentSearchForm text={search['q'] ?? ''} onSearch={(q) => change({ q })} />
      {search['q'] !== undefined ? (
        <ContentSearchResult
          key={JSON.stringify([search['q'], search['period'], search['from'], search['to'], users])}
          q={search['q']}
          span={span}
          users={users}
          onClose={() => change({ q: undefined })}
        />
      ) : (
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
                  isByTime
                />
                <p className={classes['hint']}>{common.zone(timeZone)}</p>
                {hidden && (
                  <p className={classes['hint']}>
                    <Button variant="default" size="xs" onClick={() => setWithOthers(true)}>
                      {content.showFirstWords}
                    </Button>{' '}
                    {content.isRecorded}
                  </p>
                )}
                {unread > 0 && (
                  <p className={classes['hint']} role="status">
                    {content.unread(count(unread))}
                  </p>
                )}
                {words.data?.items.length === 0 && unread === 0 && (
                  <HowToKeep text={content.nothingKeptHere} />
                )}
              </>
            )
          }
        </QueryResult>
      )}
    </>
  )
}

/**
 * The period in the page's URL, cut to full minutes so that rendering the page again does not change the
 * request.
 */
function spanIn(search: SearchState, nowMs: number, timeZone: string, locale: string): TimeRange {
  const now = Math.floor(nowMs / 60_000) * 60
  return timeRangeOf(periodFromUrl(LOG_PERIODS, search, DEFAULT_PERIOD), search, now, timeZone, locale)
}

function useColumns(words: readonly FirstWords[] = []): readonly Column<CallSession>[] {
  const { sessions } = useTexts()
  const wordsOf = new Map(words.map(({ id, text }) => [id, text ?? '']))
  const { count, percent } = useFormatters()
  const breaksText = useCacheBreaksText()
  const number = (key: string, label: string, of: (session: CallSession) => number): Column<CallSession> => ({
    key,
    label,
    isNumber: true,
    cell: (session) => count(of(session)),
  })
  const money = (key: 'quota' | 'cache_saved', label: string): Column<CallSession> => ({
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
      cell: ({ session, first_call }) => (
        <Link to="/sessions/$id" params={{ id: session }} data-row-link={session}>
          {wordsOf.get(first_call) ? <TruncatedText text={wordsOf.get(first_call) ?? ''} isName /> : session}
        </Link>
      ),
    },
    { key: 'user', label: sessions.user, cell: ({ username }) => <TruncatedText text={username} /> },
    {
      key: 'model',
      label: sessions.model,
      cell: ({ model_name, models }) => (
        <TruncatedText text={models > 1 ? sessions.andMore(model_name, models - 1) : model_name} isName />
      ),
    },
    { key: 'key', label: sessions.key, cell: ({ token_name }) => <TruncatedText text={token_name} /> },
    { key: 'last', label: sessions.last, cell: ({ last_at }) => <TimeText at={last_at} /> },
    number('calls', sessions.calls, ({ calls }) => calls),
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
    {
      key: 'breaks',
      label: sessions.breaks,
      cell: ({ breaks }) => <TruncatedText text={breaksText(breaks) || '–'} />,
    },
  ]
}
