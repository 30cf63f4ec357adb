import type { CallDetail } from '../../api/calls.ts'
import { DetailList } from '../../components/detail-list.tsx'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './call-details.module.css'

/** The parts of a call's duration: the wait for an upstream, the wait for its first token, and the stream. */
export function TimingBar({ call: { timing } }: { readonly call: CallDetail }) {
  const { call: texts, logs } = useTexts()
  const { duration } = useFormatters()
  const { queued_ms: queued, connect_ms: connecting, first_byte_ms: first, total_ms: total } = timing
  const streaming = total - (first ?? 0)
  const rows: readonly (readonly [string, number])[] = [
    ...(queued > 0 ? [[texts.queued, queued] as const] : []),
    ...(connecting > 0 ? [[texts.connecting, connecting] as const] : []),
    ...(first === null
      ? []
      : ([
          [logs.firstToken, first],
          [texts.streaming, streaming],
        ] as const)),
    [logs.total, total],
  ]
  return (
    <>
      {first !== null && (
        <div className={classes['bar']} aria-hidden>
          {queued > 0 && <span data-part="queued" style={{ flexGrow: queued }} />}
          <span data-part="waiting" style={{ flexGrow: Math.max(0, first - queued) }} />
          <span data-part="streaming" style={{ flexGrow: streaming }} />
        </div>
      )}
      <DetailList rows={rows.map(([label, time]) => [label, duration(time)])} />
    </>
  )
}
