import { Button, Switch } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { CALL_PAGE_SIZE, callsCsvUrl, callSumsQuery, callsQuery } from '../../api/calls.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { CallTable, type ListedCall, listedRefusal } from '../../components/call-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { NoCalls } from '../../components/no-calls.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { Pager } from '../../components/pager.tsx'
import { usePreferences } from '../../components/preferences.ts'
import { type SearchState, useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { SessionsButton } from '../../components/sessions-button.tsx'
import { listOrderOf, sortingOf } from '../../components/sorting.ts'
import { useNow } from '../../components/use-now.ts'
import { useLastPage } from '../../components/use-last-page.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { CallSheet } from './call-sheet.tsx'
import { CallTotals } from './call-totals.tsx'
import { ColumnsMenu } from './columns-menu.tsx'
import {
  areRefusedIncluded,
  DEFAULT_PERIOD,
  callFilterOf,
  isLogFiltered,
  logTimeRange,
  FILTERS_REMOVED,
  REFUSED_STATUS,
  refusalCountQueryOf,
  refusedCallFilterOf,
  statusFromUrl,
} from './log-filter.ts'
import { LogFilters } from './log-filters.tsx'
import classes from './logs-page.module.css'
import { mergeLiveCalls } from './merge-live-calls.ts'
import { RefusedCallList } from './refused-call-list.tsx'
import { MAX_LIVE_ROWS, useLiveCalls } from './use-live-calls.ts'
import { useRefusedOfPage } from './use-refused-of-page.ts'

const OF_ADMINS = ['user', 'channel']
const UNSORTED = { sort: undefined, order: undefined }
const REFRESH_MS = 60_000

/** The filters of the page Logs that the page Sessions has as well. */
const sessionsOf = ({ period = DEFAULT_PERIOD, from, to, user }: SearchState): SearchState => ({
  period,
  from,
  to,
  user,
})

/** The page Logs: settled calls, or calls that were refused before they began. */
export function LogsPage() {
  const [search] = useSearchState()
  return statusFromUrl(search) === REFUSED_STATUS ? <RefusedCalls /> : <SettledCalls />
}

/** What the lists of settled and of refused calls need: the filters, which are stored in the page's URL. */
function useLog() {
  const { isAdmin } = useSignedInAccount()
  const { timeZone, language } = usePreferences()
  const { id } = useParams({ strict: false })
  const [search, setSearch] = useSearchState()
  const now = useNow()
  return {
    id,
    search,
    setSearch,
    scope: isAdmin ? ('all' as const) : ('own' as const),
    span: logTimeRange(search, now, timeZone, language),
    page: Number(search['p'] ?? '1'),
    now,
  }
}

/** The newest refused calls. */
function RefusedCalls() {
  const { logs, call } = useTexts()
  const { id, search, setSearch, scope, span, page, now } = useLog()
  return (
    <>
      <PageHead title={id === undefined ? logs.title : call.title} />
      <LogFilters
        scope={scope}
        span={span}
        search={search}
        onChange={(changes) => setSearch({ ...changes, p: undefined })}
      />
      <RefusedCallList
        scope={scope}
        filter={refusedCallFilterOf(search, scope, span)}
        counters={refusalCountQueryOf(search, scope, span, now)}
        page={page}
        isFiltered={isLogFiltered({ ...search, status: undefined })}
        onClear={() => setSearch(FILTERS_REMOVED)}
      />
      <CallSheet id={id} scope={scope} ids={[]} />
    </>
  )
}

/** The newest calls and their sums; each call can be opened in a panel beside the list. */
function SettledCalls() {
  const { logs, call, common } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const { timeZone, hiddenColumns } = usePreferences()
  const { id, search, setSearch, scope, span, page } = useLog()
  const filter = callFilterOf(search, scope, span)
  const order = listOrderOf(search)
  // Calls that end from now on are added only to the first page in the default order.
  const isLive = search['live'] !== undefined && page === 1 && order.sort === undefined
  // The start of an open period moves on, and calls that end from now on are after it.
  const live = useLiveCalls(isLive, scope, { ...filter, start_timestamp: undefined })
  const calls = useQuery({
    ...callsQuery(profile.id, scope, filter, page, order),
    placeholderData: keepPreviousData,
    refetchInterval: isLive ? false : REFRESH_MS,
  })
  useLastPage(calls, CALL_PAGE_SIZE)
  const sums = useQuery({
    ...callSumsQuery(profile.id, scope, filter),
    placeholderData: keepPreviousData,
    refetchInterval: isLive ? false : REFRESH_MS,
  })
  const hidden = isAdmin ? hiddenColumns : [...hiddenColumns, ...OF_ADMINS]
  const settled = mergeLiveCalls(live.shown, calls.data?.items ?? [], MAX_LIVE_ROWS)
  const hasRefused = areRefusedIncluded(search) && order.sort === undefined
  const refused = useRefusedOfPage(
    hasRefused,
    scope,
    { settled: filter, refused: refusedCallFilterOf(search, scope, span) },
    page,
    calls.data,
  )
  // The gateway has put the calls into an order that was chosen, in which no refused ones are.
  const shown: readonly ListedCall[] =
    order.sort === undefined
      ? [...settled, ...refused.items.map(listedRefusal)].toSorted(
          (one, other) => other.created_at - one.created_at,
        )
      : settled
  return (
    <>
      <PageHead title={id === undefined ? logs.title : call.title}>
        <Switch
          label={logs.live}
          checked={isLive}
          onChange={({ currentTarget: { checked } }) =>
            setSearch({ live: checked ? '1' : undefined, p: undefined, ...(checked && UNSORTED) })
          }
        />
        <SessionsButton search={sessionsOf(search)} />
        <ColumnsMenu isAdmin={isAdmin} />
        <Button
          component="a"
          variant="default"
          href={callsCsvUrl(scope, filter, timeZone)}
          download
          leftSection={<IconDownload size={16} aria-hidden />}
        >
          {logs.csv}
        </Button>
      </PageHead>
      <LogFilters
        scope={scope}
        span={span}
        search={search}
        onChange={(changes) => setSearch({ ...changes, p: undefined })}
      />
      <div className={classes['sums']}>
        <CallTotals
          sums={sums.data}
          page={calls.data}
          live={live.shown}
          refused={refused.total}
          isByStatus={filter.reason !== undefined || (filter.cause ?? []).length > 0}
        />
        {live.waiting.length > 0 && (
          <Button variant="subtle" size="xs" className={classes['waiting'] ?? ''} onClick={live.show}>
            {logs.waiting(live.waiting.length)}
          </Button>
        )}
        <span>{common.zone(timeZone)}</span>
      </div>
      <QueryResult query={calls} rows={12}>
        {({ total }) =>
          shown.length === 0 ? (
            <EmptyLog search={search} onClear={() => setSearch(FILTERS_REMOVED)} />
          ) : (
            <>
              <CallTable
                calls={shown}
                hidden={hidden}
                isStale={calls.isPlaceholderData}
                sorting={sortingOf(search, setSearch)}
              />
              {refused.more > 0 && (
                <Button
                  variant="subtle"
                  size="xs"
                  onClick={() => setSearch({ status: REFUSED_STATUS, p: undefined })}
                >
                  {logs.moreRefused(refused.more)}
                </Button>
              )}
              <Pager
                page={page}
                pageSize={CALL_PAGE_SIZE}
                total={total}
                onPage={(next) => setSearch({ p: String(next) })}
                isByTime
              />
            </>
          )
        }
      </QueryResult>
      <CallSheet id={id} scope={scope} ids={shown.map((one) => one.id)} />
    </>
  )
}

/** Says what was left out, and leads on. */
function EmptyLog({ search, onClear }: { readonly search: SearchState; readonly onClear: () => void }) {
  const { logs, common } = useTexts()
  if (!isLogFiltered(search)) return <NoCalls text={logs.empty} />
  const text = areRefusedIncluded(search)
    ? logs.emptyFiltered
    : `${logs.emptyFiltered} ${logs.refusedLeftOut}`
  return (
    <EmptyState text={text}>
      <Button variant="default" onClick={onClear}>
        {common.clearFilters}
      </Button>
    </EmptyState>
  )
}
