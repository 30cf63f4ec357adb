import { useQuery } from '@tanstack/react-query'
import { type RefObject, useEffect, useRef, useState } from 'react'
import { type ExportedSignal, telemetryQuery } from '../../api/telemetry.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { FormSection } from '../../components/form-section.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { QueryResult } from '../../components/query-result.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** Whether telemetry reaches the OpenTelemetry collector: what was sent, what was lost, and why. */
export function TelemetrySection() {
  const { telemetry } = useTexts().settings
  const fields = useRef<HTMLDivElement>(null)
  const isSeen = useIsSeen(fields)
  return (
    <FormSection id="telemetry" title={telemetry.title} text={telemetry.hint} isWide>
      <div ref={fields}>{isSeen && <Signals />}</div>
    </FormSection>
  )
}

function Signals() {
  const { telemetry } = useTexts().settings
  const { profile } = useSignedInAccount()
  const columns = useColumns()
  return (
    <QueryResult query={useQuery(telemetryQuery(profile.id))} rows={2}>
      {(signals) =>
        signals.length === 0 ? (
          <EmptyState text={telemetry.empty} />
        ) : (
          <DataTable
            label={telemetry.table}
            columns={columns}
            rows={signals}
            keyOf={({ signal }) => signal}
          />
        )
      }
    </QueryResult>
  )
}

/**
 * Whether an element has been scrolled into view. Its data is requested only then, so that the page loads
 * faster.
 */
function useIsSeen(element: RefObject<HTMLElement | null>): boolean {
  const [isSeen, setSeen] = useState(false)
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setSeen(true)
    })
    if (element.current) observer.observe(element.current)
    return () => observer.disconnect()
  }, [element])
  return isSeen
}

function useColumns(): readonly Column<ExportedSignal>[] {
  const { settings, common } = useTexts()
  const { telemetry } = settings
  return [
    {
      key: 'signal',
      label: telemetry.signal,
      phone: 'title',
      cell: ({ signal }) => telemetry.signals[signal],
    },
    { key: 'host', label: telemetry.host, cell: ({ host, protocol }) => `${host} (${protocol})` },
    { key: 'sent', label: telemetry.sent, isNumber: true, cell: ({ sent }) => sent },
    { key: 'failed', label: telemetry.failed, isNumber: true, cell: ({ failed }) => failed },
    { key: 'dropped', label: telemetry.dropped, isNumber: true, cell: ({ dropped }) => dropped },
    {
      key: 'last',
      label: telemetry.last,
      cell: ({ last_sent_at: at, last_error: error }) => (
        <>
          {at === null ? common.never : <TimeText at={at} />} {error !== null && telemetry.failing(error)}
        </>
      ),
    },
  ]
}
