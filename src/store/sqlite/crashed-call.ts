import { budgetList, budgetsIn, chargedBudgets } from '../../domain/budget.ts'
import { HOLD, type HoldRow, type SettledCall } from '../../domain/records/usage.ts'
import { NO_USAGE } from '@sluice/wire/usage'

/** Builds the settlement of a call that a crash left open; charges what was delivered, up to the hold. */
export function crashedCall(row: HoldRow, nowMs: number): SettledCall {
  const hold = HOLD.fromRow(row)
  const { model, group, amount, prompt_amount, progress_amount } = hold
  return {
    ...hold,
    upstream_model: model,
    quota: Math.min(amount, prompt_amount + progress_amount),
    reason: 'crash',
    delivered: progress_amount > 0,
    ended_ms: nowMs,
    usage: NO_USAGE,
    duration_ms: Math.max(0, nowMs - hold.started_ms),
    budgets: budgetList(chargedBudgets(budgetsIn(hold.budgets), group)),
  }
}
