import { budgetFromColumns } from '../domain/budget.ts'
import {
  operatorLimitsAfterChange,
  type UsageLimits,
  operatorLimitsAfterDeclaration,
  operatorLimitsAfterEdit,
  NO_OPERATOR_LIMITS,
  type OperatorLimits,
  parseOperatorLimits,
  formatOperatorLimits,
  type SpendingToken,
  type UsageLimitChanges,
  type TokenGrants,
} from '../domain/usage-limits.ts'
import { TOKEN } from '../domain/records/token.ts'
import { type UsageLimitColumns, USAGE_LIMIT_FIELDS } from '../domain/records/usage-limits.ts'

/** Default period of a rate limit, in milliseconds. */
export const MINUTE_MS = 60_000

/** Converts the columns of a row to a budget and a rate limit. */
export function usageLimitsFromRow(row: UsageLimitColumns): UsageLimits {
  return {
    budget: budgetFromColumns(row.budget, row.budget_period),
    rateLimit: {
      requests: row.rate_limit_requests,
      tokens: row.rate_limit_tokens,
      parallel: row.rate_limit_parallel,
      windowMs: row.rate_limit_window || MINUTE_MS,
    },
  }
}

/** Returns only those columns that a change of a budget or rate limit sets. */
export function usageLimitColumns({ budget, rateLimit = {} }: UsageLimitChanges): Partial<UsageLimitColumns> {
  const { requests, tokens, parallel, windowMs } = rateLimit
  return {
    ...(budget !== undefined && { budget: budget?.amount ?? 0, budget_period: budget?.period ?? '' }),
    ...(requests !== undefined && { rate_limit_requests: requests }),
    ...(tokens !== undefined && { rate_limit_tokens: tokens }),
    ...(parallel !== undefined && { rate_limit_parallel: parallel }),
    ...(windowMs !== undefined && { rate_limit_window: windowMs }),
  }
}

const NO_TERMS = Object.fromEntries(
  Object.entries(USAGE_LIMIT_FIELDS).map(([column, { default: value }]) => [column, value]),
) as unknown as UsageLimitColumns

/**
 * Returns all limit columns of a new row. If a column were left out, it would become NULL whenever another
 * row of the same statement has it.
 */
export function newUsageLimitColumns(given: UsageLimitChanges): UsageLimitColumns {
  return { ...NO_TERMS, ...usageLimitColumns(given) }
}

/** Returns the columns of a row for its budget and rate limit. */
export function columnsOfUsageLimits({ budget, rateLimit }: UsageLimits): UsageLimitColumns {
  return usageLimitColumns({ budget: budget ?? null, rateLimit }) as UsageLimitColumns
}

/** The limits that an operator sets for a new token, which its holder cannot loosen. */
export function operatorLimitsOfNewToken(limits: UsageLimitChanges, grants: SpendingToken): OperatorLimits {
  const given = operatorLimitsAfterEdit(undefined, grants, grants)
  return {
    ...operatorLimitsAfterChange(NO_OPERATOR_LIMITS, limits, MINUTE_MS),
    ...(given && { grants: given }),
  }
}

/** Columns of an existing token on which the effect of a declaration depends. */
export interface DeclaredTokenRow {
  readonly operator_terms: string
  readonly remain_quota: number
  readonly used_quota: number
}

/**
 * Returns the columns that a declaration in gateway.yaml sets of an existing user or token. For a token, `declared` are
 * its declared fields: they are stored as the operator's limits, which its holder cannot loosen.
 */
export function declaredUsageLimitColumns(
  limits: UsageLimitChanges = {},
  row?: DeclaredTokenRow,
  declared?: Partial<TokenGrants>,
): Readonly<Record<string, string | number>> {
  if (!row) return { ...usageLimitColumns(limits) }
  const { grants, ...others } = operatorLimitsAfterChange(
    parseOperatorLimits(row.operator_terms),
    limits,
    MINUTE_MS,
  )
  const operator_terms = {
    ...others,
    grants: operatorLimitsAfterDeclaration(grants, row, { ...TOKEN.defaults, ...declared } as TokenGrants),
  }
  return { ...usageLimitColumns(limits), operator_terms: formatOperatorLimits(operator_terms) }
}
