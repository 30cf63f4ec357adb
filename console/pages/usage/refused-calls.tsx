import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { CallScope } from '../../api/calls.ts'
import { refusalsQuery, type UsageQuery } from '../../api/usage.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './usage-page.module.css'

/** The calls with one error code. */
interface RefusedCallsOfCode {
  readonly code: string
  readonly calls: number
}

/** How many calls of the period were refused before they began, and why; shows nothing if there are none. */
export function RefusedCalls({ scope, params }: { readonly scope: CallScope; readonly params: UsageQuery }) {
  const { usage } = useTexts()
  const { profile } = useSignedInAccount()
  const { data } = useQuery({
    ...refusalsQuery(profile.id, scope, params),
    placeholderData: keepPreviousData,
  })
  const columns = useColumns()
  if (!data || data.total === 0) return null
  const sum = (counts: readonly (number | null)[]): number =>
    counts.reduce<number>((total, count) => total + (count ?? 0), 0)
  const rows: readonly RefusedCallsOfCode[] = [
    ...data.series.map(({ key, calls }) => ({ code: key, calls: sum(calls) })),
    ...(data.other ? [{ code: usage.other, calls: sum(data.other.calls) }] : []),
  ]
  return (
    <section aria-label={usage.refusedCalls} className={classes['breakdown']}>
      <h2>{usage.refusedCalls}</h2>
      <p className={classes['note']}>{usage.refusedHint}</p>
      <DataTable
        label={usage.refusedCalls}
        columns={columns}
        rows={rows}
        keyOf={({ code }) => code}
        foot={{ code: usage.sum, calls: data.total }}
      />
    </section>
  )
}

function useColumns(): readonly Column<RefusedCallsOfCode>[] {
  const { usage, logs } = useTexts()
  const { count } = useFormatters()
  const words: Readonly<Record<string, string>> = usage.refusals
  const names: Readonly<Record<string, string>> = logs.refusals
  return [
    {
      key: 'code',
      label: usage.code,
      phone: 'title',
      cell: ({ code }) => (
        <>
          {code} {names[code] !== undefined && <small>{names[code]}</small>}
        </>
      ),
    },
    { key: 'meaning', label: usage.meaning, phone: 'hidden', cell: ({ code }) => words[code] },
    {
      key: 'calls',
      label: usage.calls,
      isNumber: true,
      phone: 'value',
      cell: ({ calls }) => count(calls),
    },
  ]
}
