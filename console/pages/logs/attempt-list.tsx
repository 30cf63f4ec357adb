import type { CallAttempt, CallDetail } from '../../api/calls.ts'
import { failureDescription } from '../../components/failure-description.ts'
import { useFormatters } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './call-details.module.css'

/** The upstream requests of a call, one below the other along a time axis. */
export function AttemptList({ call }: { readonly call: CallDetail }) {
  const { call: texts } = useTexts()
  const total = Math.max(1, call.timing.total_ms)
  return (
    <ol className={classes['attempts']} aria-label={texts.attempts}>
      {attemptsOf(call).map((attempt) => (
        <OneAttempt key={attempt.started_ms} attempt={attempt} total={total} />
      ))}
    </ol>
  )
}

function OneAttempt({ attempt, total }: { readonly attempt: CallAttempt; readonly total: number }) {
  const { call: texts, failures } = useTexts()
  const { duration } = useFormatters()
  const { channel, cause, status, message, started_ms: started, duration_ms: taken } = attempt
  const words = failureDescription(cause ?? '', failures)
  const label = status === null || words.includes(String(status)) ? words : `${words}, ${status}`
  const share = (time: number): string => `${Math.min(100, (time / total) * 100)}%`
  return (
    <li>
      <strong>{channel}</strong>
      {cause === null ? (
        <StateMark tone="ok" word={texts.answered} />
      ) : (
        <StateMark tone="bad" word={label} title={cause} />
      )}
      {message !== '' && <q>{message}</q>}
      <span>{texts.attemptTime(duration(taken), duration(started))}</span>
      <i aria-hidden data-failed={cause !== null || undefined}>
        <b style={{ marginInlineStart: share(started), width: share(taken) }} />
      </i>
    </li>
  )
}

/**
 * The attempts of a call. The gateway stores none if the only attempt succeeded; it is then derived from the
 * call.
 */
function attemptsOf({ attempts = [], channel = '', timing }: CallDetail): readonly CallAttempt[] {
  if (attempts.length > 0 || channel === '') return attempts
  const { queued_ms: started, total_ms: total } = timing
  return [
    { channel, started_ms: started, duration_ms: total - started, status: 200, cause: null, message: '' },
  ]
}
