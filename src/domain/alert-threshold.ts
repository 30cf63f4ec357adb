import type { AlertType } from './alert.ts'

/** An event that the database itself finds, and its threshold. */
export interface AlertThreshold {
  readonly type: AlertType
  /** Quota units for `quota.low`; the percentage for budgets. */
  readonly threshold: number
}

/** Orders thresholds by type. */
export function byType(a: AlertThreshold, b: AlertThreshold): number {
  return a.type < b.type ? -1 : 1
}
