import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type Usage, usageQuery } from '../../api/usage.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { Figures } from '../../components/figures.tsx'
import { axisTicks } from '../../components/axis-ticks.ts'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { endOfHalfHour, startOfDay } from '../../components/time.ts'
import { useNow } from '../../components/use-now.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { barLabel } from './bar-label.ts'
import { projectMonthlySpend } from './project-monthly-spend.ts'
import classes from './overview-page.module.css'

const DAY_S = 86_400
const DAYS = 30

/**
 * The cost of all accounts: this month with a projection to its end, errors and latency, and the last 30
 * days.
 */
export function TotalSpend({ month }: { readonly month: Usage }) {
  const { overview } = useTexts()
  const { money, exact, count, percent, duration, timeZone } = useFormatters()
  const { quota, requests, failed } = month.totals
  const pace = projectMonthlySpend(quota, Date.now() / 1000, timeZone)
  const p95 = month.latency.at(-1)?.p95_ms ?? undefined
  const all = requests + failed
  return (
    <>
      <Figures
        figures={[
          {
            label: overview.thisMonth,
            value: money(quota),
            title: exact(quota),
            note: pace === undefined ? undefined : overview.atThisPace(money(pace)),
          },
          { label: overview.calls, value: count(requests) },
          {
            label: overview.errors,
            value: all === 0 ? '–' : percent(failed / all),
            note: overview.failedCalls(count(failed), count(all)),
          },
          { label: overview.p95, value: p95 === undefined ? '–' : duration(p95) },
        ]}
      />
      <LastDays />
    </>
  )
}

function LastDays() {
  const { overview } = useTexts()
  const { profile } = useSignedInAccount()
  const { timeZone } = useFormatters()
  const now = useNow() / 1000
  const query = useQuery({
    ...usageQuery(profile.id, 'all', {
      from: startOfDay(now - (DAYS - 1) * DAY_S, timeZone),
      to: endOfHalfHour(now),
      tz: timeZone,
      step: 'day',
      by: 'none',
      top: 1,
    }),
    placeholderData: keepPreviousData,
  })
  return (
    <figure aria-label={overview.last30} className={classes['days']}>
      <figcaption>{overview.last30}</figcaption>
      <QueryResult query={query} rows={1}>
        {(usage) => <Bars usage={usage} />}
      </QueryResult>
    </figure>
  )
}

function Bars({ usage: { slots, series } }: { readonly usage: Usage }) {
  const { tag } = useTexts()
  const { money, day, moneyStep } = useFormatters()
  const amounts = slots.map((_, slot) =>
    series.reduce((sum, { points }) => sum + (points[slot]?.quota ?? 0), 0),
  )
  // Without spend, the axis is that of one unit of the currency.
  const ticks = axisTicks(Math.max(...amounts) || moneyStep, { unit: moneyStep })
  const top = ticks.at(-1) ?? 1
  const shareOf = (amount: number): string => `${(amount / top) * 100}%`
  const [first, last] = [slots.at(0), slots.at(-1)]
  return (
    <div className={classes['chart']}>
      <div className={classes['axis']} aria-hidden>
        {ticks.map((tick) => (
          <span key={tick} style={{ insetBlockEnd: shareOf(tick) }}>
            {money(tick)}
          </span>
        ))}
      </div>
      <ol className={classes['bars']}>
        {slots.map((slot, place) => {
          const amount = amounts[place] ?? 0
          const text = `${day(slot)}: ${money(amount)}`
          return (
            <li key={slot} title={text} aria-label={text}>
              <small aria-hidden>{barLabel(amount / moneyStep, tag)}</small>
              <span style={{ height: shareOf(amount) }} />
            </li>
          )
        })}
      </ol>
      <div className={classes['ends']}>
        <span>{first !== undefined && day(first)}</span>
        <span>{last !== undefined && day(last)}</span>
      </div>
    </div>
  )
}
