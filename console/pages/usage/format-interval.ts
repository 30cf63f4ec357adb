import type { Usage } from '../../api/usage.ts'
import { formatDate } from '../../components/time.ts'

/** The label of an interval of time, from its start: the hour, the day or the month in a time zone. */
export function formatInterval(
  unixSeconds: number,
  step: Usage['step'],
  locale: string,
  timeZone: string,
): string {
  const shown =
    step === 'hour'
      ? ({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const)
      : step === 'day'
        ? ({ month: 'short', day: 'numeric' } as const)
        : ({ year: 'numeric', month: 'short' } as const)
  return formatDate(unixSeconds, locale, { timeZone, ...shown })
}
