import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { callsQuery } from '../../api/calls.ts'
import type { ApiKey } from '../../api/keys.ts'
import type { ManagedUser } from '../../api/users.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { BudgetMeters } from '../../components/budget-meter.tsx'
import { CallTable } from '../../components/call-table.tsx'
import { NoCalls } from '../../components/no-calls.tsx'
import { type Figure, Figures } from '../../components/figures.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { keyIdAsUrlValue } from '../../components/url-values.ts'
import { useAccountLimits } from '../../components/use-account-limits.ts'
import { useTexts } from '../../locales/use-texts.tsx'

const RECENT = 10

/** The cost of a key, and its last calls. `owner` is its user, if that is another one. */
export function KeyUsage({
  apiKey,
  owner,
}: {
  readonly apiKey: ApiKey
  readonly owner: ManagedUser | undefined
}) {
  const { keys, logs, common, overview, limits } = useTexts()
  const { profile } = useSignedInAccount()
  const { money, exact, recent } = useFormatters()
  const { left, left_by } = apiKey
  const ofGroup = apiKey.group || (owner ?? profile).group
  const of = { token_id: String(apiKey.id) }
  const calls = useQuery(callsQuery(profile.id, owner ? 'all' : 'own', of, 1, { pageSize: RECENT }))
  const figures: readonly Figure[] = [
    { label: keys.spend, value: money(apiKey.used_quota), title: exact(apiKey.used_quota) },
    {
      label: keys.left,
      value: left === null ? common.unlimited : money(left),
      title: left === null ? undefined : exact(left),
      note: left_by ? limits.by[left_by](ofGroup) : undefined,
    },
    { label: keys.held, value: money(apiKey.held_quota), title: exact(apiKey.held_quota) },
    {
      label: keys.lastUsed,
      value: apiKey.accessed_time > 0 ? recent(apiKey.accessed_time) : common.never,
    },
  ]
  return (
    <>
      <Figures figures={figures} />
      {owner ? (
        <BudgetMeters budgets={[{ name: apiKey.name, state: apiKey }]} />
      ) : (
        <OwnBudgets apiKey={apiKey} group={ofGroup} />
      )}
      <h2>{overview.recent}</h2>
      <QueryResult query={calls}>
        {({ items }) =>
          items.length === 0 ? (
            <NoCalls text={logs.empty} />
          ) : (
            <>
              <CallTable calls={items} hidden={['key', 'user', 'channel']} />
              <p>
                <Link to="/logs" search={{ key: keyIdAsUrlValue(apiKey.id) }}>
                  {overview.allCalls}
                </Link>
              </p>
            </>
          )
        }
      </QueryResult>
    </>
  )
}

function OwnBudgets({ apiKey, group: ofGroup }: { readonly apiKey: ApiKey; readonly group: string }) {
  const account = useAccountLimits()
  const binding = account.budgets.filter(({ group }) => group === undefined || group === ofGroup)
  return <BudgetMeters budgets={[{ name: apiKey.name, state: apiKey }, ...binding]} />
}
