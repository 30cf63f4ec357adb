import type { Call } from '../../api/calls.ts'
import { useFormats } from '../../parts/session.tsx'
import { useTexts } from '../../texts/use-texts.tsx'
import classes from './call-details.module.css'

/** How long a call waited for its first token, and how long it then streamed. */
export function TimingBar({ call }: { readonly call: Call }) {
  const { call: texts, logs } = useTexts()
  const { duration } = useFormats()
  const first = call.first_byte_ms
  const rest = call.duration_ms - (first ?? 0)
  return (
    <>
      {first !== null && (
        <div className={classes['bar']} aria-hidden>
          <span style={{ flexGrow: first }} />
          <span style={{ flexGrow: rest }} />
        </div>
      )}
      <dl className={classes['rows']}>
        {first !== null && (
          <>
            <div>
              <dt>{texts.untilFirst}</dt>
              <dd>{duration(first)}</dd>
            </div>
            <div>
              <dt>{texts.streaming}</dt>
              <dd>{duration(rest)}</dd>
            </div>
          </>
        )}
        <div>
          <dt>{logs.total}</dt>
          <dd>{duration(call.duration_ms)}</dd>
        </div>
      </dl>
    </>
  )
}
