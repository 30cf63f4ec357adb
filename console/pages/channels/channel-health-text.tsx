import type { ChannelHealth } from '../../api/channel-health.ts'
import { failureDescription } from '../../components/failure-description.ts'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './channels-page.module.css'
import { sumOfLastHour } from './hour-sums.ts'
import { Sparkline } from './sparkline.tsx'

/** The last hour and the last failure of a channel, as observed by one node. */
export function ChannelHealthText({
  health,
  node,
}: {
  readonly health: ChannelHealth
  readonly node: string
}) {
  const { channels, failures: words } = useTexts()
  const { count, recent } = useFormatters()
  const { requests, failed } = sumOfLastHour(health.minutes ?? [])
  const { last_error: error, keys, failures } = health
  const rows: readonly (readonly [string, string])[] = [
    [channels.calls, count(requests)],
    [channels.errors, count(failed)],
    ...(failures > 0 ? [[channels.inARow, count(failures)] as const] : []),
    [channels.keys, channels.keyCount(keys.total, keys.set_aside)],
    [
      channels.lastFailure,
      error
        ? channels.failureAt(failureDescription(error.cause, words), recent(error.at))
        : channels.noFailure,
    ],
  ]
  return (
    <section aria-label={channels.health} className={classes['health']}>
      <h2>{channels.health}</h2>
      <p>{channels.healthHint(node)}</p>
      <dl>
        <div>
          <dt>{channels.latency}</dt>
          <dd>
            <Sparkline minutes={health.minutes ?? []} />
          </dd>
        </div>
        {rows.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
