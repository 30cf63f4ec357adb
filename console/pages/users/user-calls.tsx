import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { callsQuery } from '../../api/calls.ts'
import type { ManagedUser } from '../../api/users.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { CallTable } from '../../components/call-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { valueToUrlText } from '../../components/url-values.ts'
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
              <Link to="/logs" search={{ user: valueToUrlText(user.username) }}>
                {overview.allCalls}
              </Link>
            </p>
          </>
        )
      }
    </QueryResult>
  )
}
