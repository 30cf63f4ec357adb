import { useFormatters } from './session.tsx'

/**
 * A time of day, with the date unless it is today. The tooltip has the complete time, and the time relative
 * to now.
 */
export function TimeText({ at, isWhole = false }: { readonly at: number; readonly isWhole?: boolean }) {
  const { clock, recent, time, timeZone } = useFormatters()
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={`${recent(at)} · ${time(at)} ${timeZone}`}>
      {isWhole ? time(at) : clock(at)}
    </time>
  )
}
