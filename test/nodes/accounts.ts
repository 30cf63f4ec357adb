import type { GrantedQuotas } from '../fixtures/auditor.ts'
import { channel, type Configuration, ROOT, token, user } from '../fixtures/configuration.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { serveTraffic, TRAFFIC_MODEL } from '../fixtures/traffic.ts'

/** A set of accounts for calls. */
export interface AccountSet {
  /** Keys without `sk-`. */
  readonly keys: readonly string[]
  /** The granted quotas, for the auditor. */
  readonly granted: GrantedQuotas
  /** The accounts, and a model whose answers have the requested length. */
  readonly configure: (upstream: ScriptedUpstream) => Configuration
}

interface Owner {
  readonly quota: number
  /** Quota of each token, by key. */
  readonly tokens: Readonly<Record<string, number>>
}

const AMPLE = 1_000_000_000
const TIGHT_KEYS = Array.from({ length: 3 }, (_, index) => `tight${index}`)

/**
 * Five tokens of three users, with budgets of every kind: two tokens are used up during the storm, and so is
 * the user of a third.
 */
export const FIVE_ACCOUNTS: AccountSet = accountSet(
  {
    ann: { quota: AMPLE, tokens: { calm: AMPLE, scarce: 200_000, poor: 5_000 } },
    bob: { quota: AMPLE, tokens: { windy: AMPLE } },
    cat: { quota: 300_000, tokens: { brisk: AMPLE } },
  },
  { scarce: { budget: 100_000, budget_period: 'week' } },
)

/** Tokens with quota for a dozen calls each. */
export const POOR_ACCOUNTS: AccountSet = accountSet({
  ann: {
    quota: AMPLE,
    tokens: Object.fromEntries(Array.from({ length: 24 }, (_, index) => [`poor${index}`, 4_000])),
  },
})

/** Tokens with ample quota, and daily budgets that a few seconds of a storm use up. */
export const TIGHT_BUDGETS: AccountSet = accountSet(
  { ann: { quota: AMPLE, tokens: Object.fromEntries(TIGHT_KEYS.map((key) => [key, AMPLE])) } },
  Object.fromEntries(TIGHT_KEYS.map((key) => [key, { budget: 3_000, budget_period: 'day' }])),
)

function accountSet(
  owners: Readonly<Record<string, Owner>>,
  budgets?: Readonly<Record<string, object>>,
): AccountSet {
  const tokens = Object.values(owners).flatMap((owner) => Object.entries(owner.tokens))
  return {
    keys: tokens.map(([key]) => key),
    granted: {
      tokens: new Map(tokens.map(([key, quota]) => [`token-${key}`, quota])),
      users: new Map(Object.entries(owners).map(([name, { quota }]) => [name, quota])),
      hasBudgets: budgets !== undefined,
    },
    configure: (upstream) => ({
      ...(budgets && { groups: { default: { budget: AMPLE, budget_period: 'day' } } }),
      models: serveTraffic(upstream),
      channels: [channel(TRAFFIC_MODEL, upstream.baseUrl(TRAFFIC_MODEL))],
      users: [
        ROOT,
        ...Object.entries(owners).map(([name, owner], index) => {
          const keys = Object.entries(owner.tokens)
          const seeds = keys.map(([key, quota]) => token(key, { remain_quota: quota, ...budgets?.[key] }))
          const ofUser = budgets && { budget: AMPLE, budget_period: 'month' }
          return user(2 + index, name, seeds, { quota: owner.quota, ...ofUser })
        }),
      ],
    }),
  }
}
