/** Limits of what may still be spent, in the order in which calls are refused by them. */
export const SPENDING_LIMITS = ['key', 'user', 'key_budget', 'user_budget', 'group_budget'] as const

/** The limit that binds. */
export type SpendingLimit = (typeof SPENDING_LIMITS)[number]

/** What may still be spent, and the limit that says so; nulls if nothing limits it. */
export interface Remaining {
  readonly left: number | null
  readonly left_by: SpendingLimit | null
}

/** The least of these amounts in quota units, at least 0; absent ones do not limit. */
export function leastRemaining(
  amounts: { readonly [Limit in SpendingLimit]?: number | undefined },
): Remaining {
  let least: Remaining = { left: null, left_by: null }
  for (const limit of SPENDING_LIMITS) {
    const amount = amounts[limit]
    if (amount === undefined) continue
    const left = Math.max(0, amount)
    if (least.left === null || left < least.left) least = { left, left_by: limit }
  }
  return least
}
