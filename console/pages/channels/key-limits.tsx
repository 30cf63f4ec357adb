import type { ChannelKey } from '../../api/channel-keys.ts'
import { useFormatters } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './key-limits.module.css'

/**
 * A minute in which less than this percentage of a limit was left is marked; `docs/operations.md: Alerts`,
 * `provider.limit`.
 */
const LOW_PERCENT = 5
const HEIGHT = 18
const MINUTE_WIDTH = 1.5

const KINDS = ['requests', 'tokens'] as const

/** How much of a key's limits is left according to its provider, now and in each minute of the last hour. */
export function RemainingKeyLimits({
  limits,
  left_minutes: minutes,
}: Pick<ChannelKey, 'limits' | 'left_minutes'>) {
  const { channelKeys: t } = useTexts()
  const { count } = useFormatters()
  const stated = KINDS.flatMap((kind) => {
    const one = limits[kind]
    if (!one) return []
    const { remaining, limit } = one
    return t[kind](count(remaining), limit === undefined ? undefined : count(limit))
  })
  const noted = minutes.filter((percent) => percent !== null)
  if (stated.length + noted.length === 0) return <>–</>
  return (
    <span className={classes['cell']}>
      {noted.length > 0 && <LeftHour minutes={minutes} least={Math.min(...noted)} />}
      <span title={limits.model}>
        {stated.length === 0
          ? '–'
          : stated.map((text) => (
              <span key={text} className={classes['count']}>
                {text}
              </span>
            ))}
      </span>
    </span>
  )
}

function LeftHour({
  minutes,
  least,
}: {
  readonly minutes: ChannelKey['left_minutes']
  readonly least: number
}) {
  const { channelKeys: t } = useTexts()
  const width = minutes.length * MINUTE_WIDTH
  const label = t.leastLeft(least)
  return (
    <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={label}>
      <title>{label}</title>
      <path d={`M0 ${HEIGHT - 0.5}H${width}`} />
      {minutes.map((percent, index) => {
        if (percent === null) return undefined
        const height = Math.max(1, (percent / 100) * HEIGHT)
        const x = index * MINUTE_WIDTH
        return (
          <rect
            key={x}
            className={percent < LOW_PERCENT ? classes['low'] : undefined}
            x={x}
            y={HEIGHT - height}
            width={MINUTE_WIDTH}
            height={height}
          />
        )
      })}
    </svg>
  )
}

/** The time at which the first limit of a key resets, or at which the key is used again after a pause. */
export function KeyLimitResetTime({
  limits: { requests, tokens, rests_until: rests },
}: Pick<ChannelKey, 'limits'>) {
  const { channelKeys: t } = useTexts()
  const resets = [requests?.resets_at, tokens?.resets_at].filter((at) => at !== undefined)
  if (rests !== undefined)
    return (
      <>
        {t.restsUntil} <TimeText at={rests} />
      </>
    )
  return resets.length === 0 ? <>–</> : <TimeText at={Math.min(...resets)} />
}
