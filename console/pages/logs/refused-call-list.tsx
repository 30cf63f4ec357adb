import { Button } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import {
  CALL_PAGE_SIZE,
  type ListedRefusedCall,
  type RefusedCallFilter,
  refusedCallsQuery,
  type CallScope,
} from '../../api/calls.ts'
import { type RefusalCountQuery, refusalCountQuery } from '../../api/usage.ts'
import { TruncatedText } from '../../components/truncated-text.tsx'
import type { Column } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { refusedCountText } from './call-count-text.ts'
import classes from './logs-page.module.css'

/** Calls that were refused before they began, the newest first; each row opens its details. */
export function RefusedCallList({
  scope,
  filter,
  counters,
  page,
  isFiltered,
  onClear,
}: {
  readonly scope: CallScope
  readonly filter: RefusedCallFilter
  /** The query for how many calls were refused; undefined where it cannot be told. */
  readonly counters: RefusalCountQuery | undefined
  readonly page: number
  readonly isFiltered: boolean
  readonly onClear: () => void
}) {
  const { logs, common } = useTexts()
  const { profile } = useSignedInAccount()
  const { count, timeZone } = useFormatters()
  const query = useQuery({
    ...refusedCallsQuery(profile.id, scope, filter, page),
    placeholderData: keepPreviousData,
  })
  const counted = useQuery({
    ...refusalCountQuery(profile.id, scope, counters ?? { from: 0, to: 0, code: [] }),
    enabled: counters !== undefined,
  })
  const total = query.data?.total ?? 0
  const all = counted.data?.total ?? 0
  const columns = useColumns().filter(({ key }) => scope === 'all' || key !== 'user')
  return (
    <PagedTable
      label={logs.refusedTable}
      columns={columns}
      query={query}
      pageSize={CALL_PAGE_SIZE}
      isByTime
      areOpened
      above={
        <div className={classes['sums']}>
          <div role="status" aria-label={logs.totals} title={all > total ? logs.refusedKeptHint : undefined}>
            {refusedCountText(logs, total, all, count)}
          </div>
          <span>{common.zone(timeZone)}</span>
        </div>
      }
      empty={
        <EmptyState text={isFiltered ? logs.emptyFiltered : logs.emptyRefused}>
          <Button variant="default" onClick={onClear}>
            {common.clearFilters}
          </Button>
        </EmptyState>
      }
    />
  )
}

function useColumns(): readonly Column<ListedRefusedCall>[] {
  const { logs } = useTexts()
  const words: Readonly<Record<string, string>> = logs.refusals
  return [
    {
      key: 'time',
      label: logs.time,
      phone: 'title',
      cell: ({ id, created_at }) => (
        <Link to="/logs/$id" params={{ id }} search={(before: object) => before} data-row-link={id}>
          <TimeText at={created_at} />
        </Link>
      ),
    },
    { key: 'model', label: logs.model, cell: ({ model_name }) => <TruncatedText text={model_name} isName /> },
    {
      key: 'key',
      label: logs.key,
      phone: 'hidden',
      cell: ({ token_name }) => <TruncatedText text={token_name} />,
    },
    {
      key: 'user',
      label: logs.user,
      phone: 'hidden',
      cell: ({ username }) => <TruncatedText text={username} />,
    },
    {
      key: 'status',
      label: logs.status,
      phone: 'value',
      cell: ({ code, message }) => (
        <StateMark tone="bad" word={logs.refusedFor(words[code] ?? code)} title={message} />
      ),
    },
  ]
}
