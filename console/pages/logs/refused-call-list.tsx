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
import { TruncatedText } from '../../components/truncated-text.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { Pager } from '../../components/pager.tsx'
import { QueryResult } from '../../components/query-result.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './logs-page.module.css'

/** Calls that were refused before they began, the newest first; each row opens its details. */
export function RefusedCallList({
  scope,
  filter,
  page,
  isFiltered,
  onPage,
  onClear,
}: {
  readonly scope: CallScope
  readonly filter: RefusedCallFilter
  readonly page: number
  readonly isFiltered: boolean
  readonly onPage: (page: number) => void
  readonly onClear: () => void
}) {
  const { logs, common } = useTexts()
  const { profile } = useSignedInAccount()
  const { count, timeZone } = useFormatters()
  const query = useQuery({
    ...refusedCallsQuery(profile.id, scope, filter, page),
    placeholderData: keepPreviousData,
  })
  const columns = useColumns().filter(({ key }) => scope === 'all' || key !== 'user')
  return (
    <QueryResult query={query} rows={12}>
      {({ items, total }) =>
        items.length === 0 ? (
          <EmptyState text={isFiltered ? logs.emptyFiltered : logs.emptyRefused}>
            <Button variant="default" onClick={onClear}>
              {common.clearFilters}
            </Button>
          </EmptyState>
        ) : (
          <>
            <div className={classes['sums']}>
              <div role="status" aria-label={logs.totals}>
                {logs.refusedCount(total, count(total))}
              </div>
              <span>{common.zone(timeZone)}</span>
            </div>
            <DataTable
              label={logs.refusedTable}
              columns={columns}
              rows={items}
              keyOf={({ id }) => id}
              isStale={query.isPlaceholderData}
              areOpened
            />
            <Pager
              page={page}
              pageSize={CALL_PAGE_SIZE}
              total={total}
              onPage={onPage}
              labels={{ previous: logs.newer, next: logs.older }}
            />
          </>
        )
      }
    </QueryResult>
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
