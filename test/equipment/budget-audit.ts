/** The account of a budget in one period. */
export interface BudgetRow {
  readonly account: string
  readonly amount: number
  readonly used: number
  /** Only present with several nodes. */
  readonly leased?: number
}

/** The columns of a usage row that determine which budgets it counts for. */
export interface BudgetUsage {
  readonly user_id: number
  readonly token_id: number
  readonly group_name: string
  readonly ended_ms: number
  readonly duration_ms: number
  readonly quota: number
}

/**
 * Compares the accounts of budgets, which were on from the start, with the log: each must be the sum of the
 * calls that began in its period, and none above its amount. Returns a sentence for each broken promise.
 * Shares no code with the gateway.
 */
export function auditBudgets(
  budgets: readonly BudgetRow[],
  usage: readonly BudgetUsage[],
  overshoot = 0,
): string[] {
  const broken: string[] = []
  for (const { account, amount, used, leased = 0 } of budgets) {
    const [, kind, date, letter, name] = /^b:(day|week|month):([^:]*):([utg]):(.*)$/s.exec(account) ?? []
    const start = new Date(`${date}T00:00:00Z`)
    const end = new Date(start)
    if (kind === 'month') end.setUTCMonth(end.getUTCMonth() + 1)
    else end.setUTCDate(end.getUTCDate() + (kind === 'week' ? 7 : 1))
    const sum = usage
      .filter((row) => {
        // The usage row for a lost node names no group. All users of the tests are in the default group.
        const group = row.group_name || 'default'
        const owner = letter === 'u' ? row.user_id : letter === 't' ? row.token_id : group
        const began = row.ended_ms - row.duration_ms
        return String(owner) === name && began >= start.getTime() && began < end.getTime()
      })
      .reduce((total, { quota }) => total + quota, 0)
    if (sum !== used) broken.push(`the budget ${account} has ${used} used, its calls were charged ${sum}`)
    if (used > amount + overshoot) broken.push(`the budget ${account} of ${amount} is overspent: ${used}`)
    if (leased !== 0) broken.push(`the budget ${account} believes that ${leased} is lent`)
  }
  if (budgets.length === 0) broken.push('no budget was used')
  return broken
}
