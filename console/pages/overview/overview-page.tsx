import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { callsQuery } from '../../api/calls.ts'
import { type UsagePoint, usageQuery } from '../../api/usage.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { CallTable } from '../../components/call-table.tsx'
import { Figures } from '../../components/figures.tsx'
import { NoCalls } from '../../components/no-calls.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { usePreferences } from '../../components/preferences.ts'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { endOfHalfHour, startOfMonth } from '../../components/time.ts'
import { useNow } from '../../components/use-now.ts'
import { useAccountLimits } from '../../components/use-account-limits.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { TotalSpend } from './total-spend.tsx'
import { AvailableModels } from './available-models.tsx'
import { ConnectSection, RECENT_CALLS } from './connect-section.tsx'
import { KeyList } from './key-list.tsx'
import classes from './overview-page.module.css'
import { RemainingQuota } from './remaining-quota.tsx'
import { OverviewBudgets } from './overview-budgets.tsx'
import { TopSpenders } from './top-spenders.tsx'
import { TroubledChannels } from './troubled-channels.tsx'

const SPENDERS = 5
/** As many as stand beside the channels in trouble and the users who spend most. */
const RECENT_CALLS_OF_ALL = 9

/** The start page: cost, keys and recent calls of the account, or of all accounts for administrators. */
export function OverviewPage() {
  const { overview } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const { timeZone } = usePreferences()
  const scope = isAdmin ? 'all' : 'own'
  const now = useNow() / 1000
  const month = useQuery({
    ...usageQuery(profile.id, scope, {
      from: startOfMonth(now, timeZone),
      to: endOfHalfHour(now),
      tz: timeZone,
      step: 'month',
      by: isAdmin ? 'user' : 'none',
      top: SPENDERS,
    }),
    placeholderData: keepPreviousData,
  })
  const { recentKeys } = useAccountLimits()
  const calls = useQuery(
    callsQuery(profile.id, scope, {}, 1, { pageSize: isAdmin ? RECENT_CALLS_OF_ALL : RECENT_CALLS }),
  )
  const keys = (
    <section aria-label={overview.keys}>
      <h2 className={classes['heading']}>
        {overview.keys}
        <Link to="/keys">{overview.allKeys}</Link>
      </h2>
      <KeyList keys={recentKeys} />
    </section>
  )
  return (
    <>
      <PageHead title={overview.title} />
      {!isAdmin && <ConnectSection />}
      <div className={isAdmin ? undefined : classes['pair']}>
        <section aria-label={overview.spend}>
          <h2 className={classes['heading']}>
            {overview.spend}
            <span>{isAdmin ? overview.allUsers : overview.thisMonth}</span>
          </h2>
          <QueryResult query={month} rows={2}>
            {(found) => (isAdmin ? <TotalSpend month={found} /> : <Spend totals={found.totals} />)}
          </QueryResult>
        </section>
        {!isAdmin && <RemainingQuota name={overview.left} />}
      </div>
      <OverviewBudgets />
      {!isAdmin && <AvailableModels />}
      <div className={classes['two']}>
        <section aria-label={overview.recent}>
          <h2 className={classes['heading']}>
            {overview.recent}
            <Link to="/logs">{overview.allCalls}</Link>
          </h2>
          <QueryResult query={calls}>
            {({ items }) =>
              items.length === 0 ? (
                <NoCalls text={overview.noCalls} />
              ) : (
                <CallTable
                  calls={items}
                  hidden={['channel', 'first', 'key', 'tier', 'region', isAdmin ? 'total' : 'user']}
                />
              )
            }
          </QueryResult>
        </section>
        <div className={classes['side']}>
          {isAdmin && <TroubledChannels />}
          {isAdmin && (
            <section aria-label={overview.spenders}>
              <h2 className={classes['heading']}>
                {overview.spenders}
                <Link to="/usage" search={{ period: 'month', by: 'user' }}>
                  {overview.allSpenders}
                </Link>
              </h2>
              <QueryResult query={month}>{(found) => <TopSpenders month={found} />}</QueryResult>
            </section>
          )}
          {!isAdmin && keys}
        </div>
      </div>
      {isAdmin && (
        <div className={classes['own']}>
          {keys}
          <RemainingQuota name={overview.yourAccount} />
        </div>
      )}
    </>
  )
}

function Spend({ totals }: { readonly totals: UsagePoint }) {
  const { overview } = useTexts()
  const { money, exact, count } = useFormatters()
  const { quota, requests, input, cached, cache_write, output } = totals
  return (
    <Figures
      figures={[
        { label: overview.spend, value: money(quota), title: exact(quota) },
        { label: overview.calls, value: count(requests) },
        { label: overview.tokens, value: count(input + cached + cache_write + output) },
      ]}
    />
  )
}
