import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { usageQuery } from '../../api/usage.ts'
import type { ManagedUser } from '../../api/users.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { Figures } from '../../components/figures.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { PageSection } from '../../components/page-section.tsx'
import { usePreferences } from '../../components/preferences.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { endOfHalfHour, startOfMonth } from '../../components/time.ts'
import { valueToUrlText } from '../../components/url-values.ts'
import { useNow } from '../../components/use-now.ts'
import { useTexts } from '../../locales/use-texts.tsx'

const TOP = 20

interface Spent {
  readonly key: string
  readonly label: string
  readonly quota: number
  readonly requests: number
}

/** What a user has spent this month, as a query whose parameters change each half hour at most. */
function useMonthOfUser({ username }: ManagedUser, by: 'model' | 'key') {
  const { profile } = useSignedInAccount()
  const { timeZone } = usePreferences()
  const now = useNow() / 1000
  return useQuery({
    ...usageQuery(profile.id, 'all', {
      from: startOfMonth(now, timeZone),
      to: endOfHalfHour(now),
      tz: timeZone,
      step: 'day',
      by: by === 'key' ? 'token' : by,
      top: TOP,
      username,
    }),
    placeholderData: keepPreviousData,
  })
}

/** The cost, calls and tokens of a user this month. */
export function UserUsage({ user }: { readonly user: ManagedUser }) {
  const { overview } = useTexts()
  const { money, exact, count } = useFormatters()
  return (
    // The sums that the table by model has.
    <QueryResult query={useMonthOfUser(user, 'model')}>
      {({ totals: { quota, requests, input, cached, cache_write, output } }) => (
        <Figures
          figures={[
            { label: overview.thisMonth, value: money(quota), title: exact(quota) },
            { label: overview.calls, value: count(requests) },
            { label: overview.tokens, value: count(input + cached + cache_write + output) },
          ]}
        />
      )}
    </QueryResult>
  )
}

/** What a user has spent this month by model or by key, with a link to the page Usage. */
export function UserSpend({ user, by }: { readonly user: ManagedUser; readonly by: 'model' | 'key' }) {
  const { users } = useTexts()
  const { count } = useFormatters()
  const title = users.spendBy[by]
  const query = useMonthOfUser(user, by)
  const columns: readonly Column<Spent>[] = [
    { key: 'label', label: users.by[by], phone: 'title', cell: ({ label }) => label },
    { key: 'calls', label: users.calls, isNumber: true, cell: ({ requests }) => count(requests) },
    { key: 'spend', label: users.spend, isNumber: true, cell: ({ quota }) => <MoneyText quota={quota} /> },
  ]
  return (
    <PageSection title={title}>
      <QueryResult query={query} rows={3}>
        {({ series }) =>
          series.length === 0 ? (
            <EmptyState text={users.noSpend} />
          ) : (
            <DataTable
              label={title}
              columns={columns}
              rows={series.map(({ key, label, points }) => ({
                key,
                label,
                quota: points.reduce((sum, { quota }) => sum + quota, 0),
                requests: points.reduce((sum, { requests }) => sum + requests, 0),
              }))}
              keyOf={({ key }) => key}
            />
          )
        }
      </QueryResult>
      <p>
        <Link to="/usage" search={{ period: 'month', user: valueToUrlText(user.username), by }}>
          {users.inUsage}
        </Link>
      </p>
    </PageSection>
  )
}
