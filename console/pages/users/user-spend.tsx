import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { usageQuery } from '../../api/usage.ts'
import type { ManagedUser } from '../../api/users.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { usePreferences } from '../../components/preferences.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { startOfMonth } from '../../components/time.ts'
import { useTexts } from '../../locales/use-texts.tsx'

const TOP = 20
const MINUTE_S = 60

interface Spent {
  readonly key: string
  readonly label: string
  readonly quota: number
  readonly requests: number
}

/** What a user has spent this month by model or by key, with a link to the page Usage. */
export function UserSpend({ user, by }: { readonly user: ManagedUser; readonly by: 'model' | 'key' }) {
  const { users } = useTexts()
  const { count } = useFormatters()
  const { profile } = useSignedInAccount()
  const { timeZone } = usePreferences()
  const [openedAt] = useState(() => Math.floor(Date.now() / 1000 / MINUTE_S) * MINUTE_S + MINUTE_S)
  const title = users.spendBy[by]
  const query = usageQuery(profile.id, 'all', {
    from: startOfMonth(openedAt, timeZone),
    to: openedAt,
    tz: timeZone,
    step: 'day',
    by: by === 'key' ? 'token' : by,
    top: TOP,
    username: user.username,
  })
  const columns: readonly Column<Spent>[] = [
    { key: 'label', label: users.by[by], phone: 'title', cell: ({ label }) => label },
    { key: 'calls', label: users.calls, isNumber: true, cell: ({ requests }) => count(requests) },
    { key: 'spend', label: users.spend, isNumber: true, cell: ({ quota }) => <MoneyText quota={quota} /> },
  ]
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <QueryResult query={useQuery(query)} rows={3}>
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
        <Link to="/usage" search={{ period: 'month', user: user.username, by }}>
          {users.inUsage}
        </Link>
      </p>
    </section>
  )
}
