/** Limits on spending, in the order in which they are checked when a call begins. */
export const SPENDING_LIMITS = ['key', 'user', 'key_budget', 'user_budget', 'group_budget'] as const

/** A balance or budget that limits what may still be spent. */
export type SpendingLimit = (typeof SPENDING_LIMITS)[number]

/** Quota units that may still be spent, and the limit that leaves the least; null if nothing limits it. */
export interface RemainingSpend {
  readonly left: number | null
  readonly left_by: SpendingLimit | null
}

/**
 * The least of the given amounts in quota units, at least 0. An absent amount means that this limit does not
 * exist.
 */
export function leastRemaining(
  amounts: { readonly [Limit in SpendingLimit]?: number | undefined },
): RemainingSpend {
  let least: RemainingSpend = { left: null, left_by: null }
  for (const limit of SPENDING_LIMITS) {
    const amount = amounts[limit]
    if (amount === undefined) continue
    const left = Math.max(0, amount)
    if (least.left === null || left < least.left) least = { left, left_by: limit }
  }
  return least
}
