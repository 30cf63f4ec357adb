import { budgetFrom } from '../domain/budget.ts'
import {
  afterOperatorChange,
  type CallTerms,
  updateGrants,
  NO_OPERATOR_TERMS,
  type OperatorTerms,
  operatorTermsFrom,
  operatorTermsText,
  type TermChanges,
  type TokenGrants,
} from '../domain/usage-limits.ts'
import { type TermColumns, TERMS } from '../domain/records/usage-limits.ts'

/** The window of a rate limit that does not state one. */
export const MINUTE_MS = 60_000

/** Converts the columns. */
export function termsFromRow(row: TermColumns): CallTerms {
  return {
    budget: budgetFrom(row.budget, row.budget_period),
    rateLimit: {
      requests: row.rate_limit_requests,
      tokens: row.rate_limit_tokens,
      parallel: row.rate_limit_parallel,
      windowMs: row.rate_limit_window || MINUTE_MS,
    },
  }
}

/** The columns of the changes. */
export function termColumns({ budget, rateLimit = {} }: TermChanges): Partial<TermColumns> {
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
  Object.entries(TERMS).map(([column, { default: value }]) => [column, value]),
) as unknown as TermColumns

/** All columns of a new row; rows of one statement that lack some would get NULL there. */
export function newTermColumns(given: TermChanges): TermColumns {
  return { ...NO_TERMS, ...termColumns(given) }
}

/** The columns of terms. */
export function columnsOfTerms({ budget, rateLimit }: CallTerms): TermColumns {
  return termColumns({ budget: budget ?? null, rateLimit }) as TermColumns
}

/** The operator's terms of a new token that is created by an operator. */
export function operatorTermsOfNew(terms: TermChanges, grants: TokenGrants): OperatorTerms {
  const given = updateGrants(undefined, { ...grants, used_quota: 0 }, grants)
  return { ...afterOperatorChange(NO_OPERATOR_TERMS, terms, MINUTE_MS), ...(given && { grants: given }) }
}

/**
 * The columns of a row whose terms are declared; for a token, they are also stored as the operator's terms.
 */
export function declaredTermColumns(
  terms: TermChanges,
  row: { readonly operator_terms?: string },
): Readonly<Record<string, string | number>> {
  const { operator_terms: before } = row
  if (before === undefined) return { ...termColumns(terms) }
  const operator_terms = afterOperatorChange(operatorTermsFrom(before), terms, MINUTE_MS)
  return { ...termColumns(terms), operator_terms: operatorTermsText(operator_terms) }
}
