import { useFormats } from './session.tsx'

/** A time: relative while it is recent, complete in the tooltip. */
export function TimeText({ at, isWhole = false }: { readonly at: number; readonly isWhole?: boolean }) {
  const { recent, time, timeZone } = useFormats()
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={`${time(at)} ${timeZone}`}>
      {isWhole ? time(at) : recent(at)}
    </time>
  )
}
