import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { callSumsQuery, callsQuery } from '../../api/calls.ts'
import type { ManagedUser } from '../../api/users.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { CallTable } from '../../components/call-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { Figures } from '../../components/figures.tsx'
import { usePreferences } from '../../components/preferences.ts'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { startOfMonth } from '../../components/time.ts'
import { useTexts } from '../../locales/use-texts.tsx'

const RECENT = 20

/** The last calls of a user. */
export function UserCalls({ user }: { readonly user: ManagedUser }) {
  const { logs, overview } = useTexts()
  const { profile } = useSignedInAccount()
  return (
    <QueryResult
      query={useQuery(callsQuery(profile.id, 'all', { username: user.username }, 1, { pageSize: RECENT }))}
    >
      {({ items }) =>
        items.length === 0 ? (
          <EmptyState text={logs.empty} />
        ) : (
          <>
            <CallTable calls={items} hidden={['user', 'tier', 'region']} />
            <p>
              <Link to="/logs" search={{ user: user.username }}>
                {overview.allCalls}
              </Link>
            </p>
          </>
        )
      }
    </QueryResult>
  )
}

/** The cost of a user this month. */
export function UserUsage({ user }: { readonly user: ManagedUser }) {
  const { overview } = useTexts()
  const { profile } = useSignedInAccount()
  const { timeZone } = usePreferences()
  const { money, exact, count } = useFormatters()
  const [openedAt] = useState(() => Date.now() / 1000)
  const filter = { username: user.username, start_timestamp: startOfMonth(openedAt, timeZone) }
  return (
    <QueryResult query={useQuery(callSumsQuery(profile.id, 'all', filter))}>
      {(sums) => (
        <Figures
          figures={[
            { label: overview.thisMonth, value: money(sums.quota), title: exact(sums.quota) },
            { label: overview.calls, value: count(sums.requests) },
            { label: overview.tokens, value: count(sums.prompt_tokens + sums.completion_tokens) },
          ]}
        />
      )}
    </QueryResult>
  )
}
