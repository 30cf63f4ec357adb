import { budgetList, budgetsIn, chargedBudgets } from '../../domain/budget.ts'
import { NO_USAGE } from '../../domain/usage.ts'
import type { SettledCall } from '../ledger-writes.ts'
import type { Database } from '../schema.ts'

/** Builds the settlement of a call that a crash left open: charges what was delivered, up to the hold. */
export function crashedCall(hold: Database['holds'], nowMs: number): SettledCall {
  return {
    id: hold.id,
    token_id: hold.token_id,
    user_id: hold.user_id,
    model: hold.model,
    requested_model: hold.requested_model,
    upstream_model: hold.model,
    channel: hold.channel,
    group: hold.group_name,
    stream: hold.stream === 1,
    price_version: hold.price_version,
    kind: hold.kind as SettledCall['kind'],
    quota: Math.min(hold.amount, hold.prompt_amount + hold.progress_amount),
    reason: 'crash',
    delivered: hold.progress_amount > 0,
    ended_ms: nowMs,
    usage: NO_USAGE,
    duration_ms: Math.max(0, nowMs - hold.started_ms),
    first_byte_ms: null,
    budgets: budgetList(chargedBudgets(budgetsIn(hold.budgets), hold.group_name)),
  }
}
