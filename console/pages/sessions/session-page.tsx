import { Button } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { CALL_PAGE_SIZE, type CallFilter, callsQuery } from '../../api/calls.ts'
import { type CallSession, callSessionsQuery } from '../../api/sessions.ts'
import { totalInputTokens, cacheBreakCounts, shareReadFromCache } from '../../components/cache-breaks.ts'
import { Figures } from '../../components/figures.tsx'
import { ObjectNotFound } from '../../components/object-not-found.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { Pager } from '../../components/pager.tsx'
import { usePreferences } from '../../components/preferences.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { type SearchState, useSearchState } from '../../components/search-state.ts'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { valueToUrlText } from '../../components/url-values.ts'
import { useLastPage } from '../../components/use-last-page.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { useCacheBreaksText } from './use-cache-breaks-text.ts'
import { SessionCalls } from './session-calls.tsx'
import { SessionThread } from './session-thread.tsx'
import classes from './sessions.module.css'

const REFRESH_MS = 60_000
const IN_ORDER = { sort: 'created_at', order: 'asc' } as const

/**
 * A session (calls that belong to one conversation): its sums, and its calls in order, each with the reason
 * why a prompt cache was not used.
 */
export function SessionPage() {
  const { id = '' } = useParams({ strict: false })
  const { sessions } = useTexts()
  const { profile } = useSignedInAccount()
  const query = useQuery({
    ...callSessionsQuery(profile.id, { session: id }, 1),
    refetchInterval: REFRESH_MS,
  })
  return (
    <QueryResult query={query}>
      {({ items: [session] }) =>
        session ? (
          <OneSession session={session} />
        ) : (
          <ObjectNotFound text={sessions.gone} to="/sessions" label={sessions.back} />
        )
      }
    </QueryResult>
  )
}

function OneSession({ session }: { readonly session: CallSession }) {
  const { sessions, content, common } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const { timeZone } = usePreferences()
  const { time } = useFormatters()
  const [{ p = '1', as }, setSearch] = useSearchState()
  const isThread = as === 'thread'
  const page = Number(p)
  const filter: CallFilter = { session: session.session }
  const calls = useQuery({
    ...callsQuery(profile.id, isAdmin ? 'all' : 'own', filter, page, IN_ORDER),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  })
  useLastPage(calls, CALL_PAGE_SIZE)
  const broken = useCacheBreaksText()(session.breaks)
  const log: SearchState = { period: 'all', session: valueToUrlText(session.session), ...IN_ORDER }
  return (
    <>
      <PageHead
        title={sessions.titleOf(session.session)}
        above={<Link to="/sessions">{sessions.back}</Link>}
        beside={
          isAdmin && (
            <Link to="/users/$id" params={{ id: String(session.user_id) }}>
              {session.username}
            </Link>
          )
        }
      >
        <Button variant="default" onClick={() => setSearch({ as: isThread ? undefined : 'thread' })}>
          {isThread ? content.table : content.thread}
        </Button>
        <Button component={Link} variant="default" to="/logs" search={log as never}>
          {sessions.inLog}
        </Button>
      </PageHead>
      <SessionFigures session={session} />
      <h2 className={classes['heading']}>{sessions.inOrder}</h2>
      <p className={classes['hint']}>
        {sessions.fromTo(time(session.first_at), time(session.last_at), timeZone)}
        {broken !== '' && `${common.betweenSentences}${sessions.brokeFor(broken)}`}
      </p>
      <QueryResult query={calls} rows={12}>
        {({ items, total }) => (
          <>
            {isThread ? (
              <SessionThread calls={items} />
            ) : (
              <SessionCalls calls={items} isStale={calls.isPlaceholderData} log={log} />
            )}
            <Pager
              page={page}
              pageSize={CALL_PAGE_SIZE}
              total={total}
              onPage={(next) => setSearch({ p: String(next) })}
            />
          </>
        )}
      </QueryResult>
    </>
  )
}

/** How many tokens the calls of a session used, and what prompt caches saved. */
function SessionFigures({ session }: { readonly session: CallSession }) {
  const { sessions, caches } = useTexts()
  const { count, money, exact, percent } = useFormatters()
  const breaks = cacheBreakCounts(session.breaks)
  const share = shareReadFromCache(session)
  const amount = (label: string, quota: number, note?: string) => ({
    label,
    value: money(quota),
    title: exact(quota),
    note,
  })
  return (
    <div role="group" aria-label={sessions.totals}>
      <Figures
        figures={[
          amount(sessions.cost, session.quota, sessions.callCount(session.calls, count(session.calls))),
          {
            label: caches.read,
            value: share === undefined ? '–' : percent(share),
            note: caches.readOf(count(session.cached), count(totalInputTokens(session))),
          },
          amount(caches.saved, session.cache_saved, caches.savedNote),
          amount(caches.surcharge, session.cache_surcharge, caches.surchargeNote),
          {
            label: caches.breaks,
            value: count(breaks.reduce((sum, { calls }) => sum + calls, 0)),
          },
        ]}
      />
    </div>
  )
}
