import type { ChannelHealth, Condition } from '../api/channel-health.ts'
import { useTexts } from '../locales/use-texts.tsx'
import { failureDescription } from './failure-description.ts'
import { useFormatters } from './session.tsx'
import { StateMark, type StateSeverity } from './state-mark.tsx'

const TONES: Readonly<Record<Condition, StateSeverity>> = {
  untried: 'off',
  works: 'ok',
  degraded: 'warn',
  drained: 'off',
  failing: 'warn',
  resting: 'bad',
  probing: 'warn',
  disabled: 'off',
}

/** Shows whether calls are sent to a channel, and if not, why and until when. */
export function ChannelState({
  isEnabled,
  health,
  at = 0,
}: {
  readonly isEnabled: boolean
  /** The health of the channel; undefined until the gateway has responded. */
  readonly health?:
    | (Pick<ChannelHealth, 'condition' | 'tried' | 'rests_until' | 'last_error'> &
        Partial<Pick<ChannelHealth, 'cause'>>)
    | undefined
  /** The time of the gateway's clock, in Unix seconds. */
  readonly at?: number
}) {
  const { channels, failures } = useTexts()
  const { count, duration } = useFormatters()
  if (isEnabled && !health) return <StateMark tone="off" word="–" />
  const state = isEnabled ? (health?.condition ?? 'untried') : 'disabled'
  const cause = health?.last_error?.cause
  const restsUntil = health?.rests_until ?? null
  const left = Math.max(1, (restsUntil ?? 0) - at)
  const word =
    state === 'resting' && restsUntil !== null
      ? channels.restsFor(left < 60 ? channels.seconds(count(left)) : duration(left * 1000))
      : (state === 'failing' && channels.noKey[health?.cause ?? '']) ||
        (state === 'probing' && health?.tried === false ? channels.toBeTried : channels.states[state])
  const hasTrouble = TONES[state] === 'warn' || TONES[state] === 'bad'
  return (
    <StateMark
      tone={TONES[state]}
      word={word}
      {...(hasTrouble &&
        cause !== undefined && { title: channels.lastError(failureDescription(cause, failures)) })}
    />
  )
}
