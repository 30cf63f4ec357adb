import { startOfMonth } from '../../components/time.ts'

/** More seconds than any month has, so that the start of a month plus this is within the next month. */
const A_MONTH_S = 32 * 86_400
/** The fraction of a month that must have passed before its cost is extrapolated. */
const LEAST_PART = 0.05

/**
 * The quota units that the whole month will cost if spending continues as it has since its start; undefined
 * during the first twentieth of the month.
 */
export function projectMonthlySpend(quota: number, nowS: number, timeZone: string): number | undefined {
  const start = startOfMonth(nowS, timeZone)
  const part = (nowS - start) / (startOfMonth(start + A_MONTH_S, timeZone) - start)
  return part < LEAST_PART ? undefined : Math.round(quota / part)
}
