import { useQuery } from '@tanstack/react-query'
import type { RemainingSpend } from '../../src/domain/remaining-spend.ts'
import { type RecentKey, appShellQuery, refreshingAppShellQuery } from '../api/account.ts'
import type { NamedBudget } from './budget-meter.tsx'
import { useSignedInAccount } from './session.tsx'

const REFRESH_MS = 30_000
/** Maximum age, in milliseconds, at which the data of the page is used without a new request. */
const STALE_MS = 5000

/** How much the account may still spend, and the budgets of the account and its groups. */
interface AccountLimits extends RemainingSpend {
  readonly budgets: readonly (NamedBudget & { readonly group: string | undefined })[]
  /** The keys of the account that were used last. */
  readonly recentKeys: readonly RecentKey[]
}

/** The limits of the signed-in account, kept up to date while the page is visible. */
export function useAccountLimits(): AccountLimits {
  const { profile } = useSignedInAccount()
  const { data } = useQuery({
    ...refreshingAppShellQuery(REFRESH_MS, STALE_MS),
    queryKey: appShellQuery.queryKey,
  })
  const { left = profile.quota, left_by = 'user', budgets = [], recent_keys: recentKeys = [] } = data ?? {}
  return {
    left,
    left_by,
    recentKeys,
    budgets: budgets.map(({ subject, name, ...state }) => ({
      name,
      state,
      group: subject === 'group' ? name : undefined,
    })),
  }
}
