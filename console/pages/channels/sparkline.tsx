import type { ChannelMinuteSums } from '../../api/channel-health.ts'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { sumOfLastHour, sparkline } from './hour-sums.ts'
import classes from './sparkline.module.css'

/**
 * A small chart of the last hour of a channel: a line of median durations, and marks for the minutes with
 * failures.
 */
export function Sparkline({ minutes }: { readonly minutes: readonly ChannelMinuteSums[] }) {
  const { channels } = useTexts()
  const { count, duration } = useFormatters()
  const { requests, failed, latestMs } = sumOfLastHour(minutes)
  if (requests === 0) return <span className={classes['none']}>{'–'}</span>
  const { width, height, lines, failures } = sparkline(minutes)
  const label = channels.hour(count(requests), count(failed), latestMs === null ? '–' : duration(latestMs))
  return (
    <span className={classes['cell']} title={label}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
        <path d={`M0 ${height - 0.5}H${width}`} />
        {lines.map((points) => (
          <polyline key={points} points={points} />
        ))}
        {failures.map(({ x, size }) => (
          <rect key={x} x={x} y={height - size} width={1.5} height={size} />
        ))}
      </svg>
      <span aria-hidden>{latestMs === null ? '–' : duration(latestMs)}</span>
    </span>
  )
}
