import { startOfMonth } from '../../components/time.ts'

/** Longer than any month, in seconds. */
const A_MONTH_S = 32 * 86_400
/** The part of a month after which its pace says something. */
const LEAST_PART = 0.05

/**
 * The quota of the whole month at the pace since its start; undefined while a twentieth of it has not passed.
 */
export function projectMonth(quota: number, nowS: number, timeZone: string): number | undefined {
  const start = startOfMonth(nowS, timeZone)
  const part = (nowS - start) / (startOfMonth(start + A_MONTH_S, timeZone) - start)
  return part < LEAST_PART ? undefined : Math.round(quota / part)
}
