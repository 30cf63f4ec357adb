import { Button } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type Batch, BATCH_PAGE_SIZE, batchesQuery } from '../../api/batches.ts'
import type { Column } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { PageHint } from '../../components/page-section.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { TruncatedId } from '../../components/truncated-id.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { valuesOfUrlText } from '../../components/url-values.ts'
import { Toolbar } from '../../components/toolbar.tsx'
import { ValueFilter } from '../../components/value-filter.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { BatchState, endedLines } from './batch-state.tsx'

/** Batches with their progress and cost, the newest first. Administrators see those of all users. */
export function BatchesPage() {
  const { batches, common } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const [search, setSearch] = useSearchState()
  const users = isAdmin ? valuesOfUrlText(search['user']) : []
  const page = Number(search['p'] ?? '1')
  const query = useQuery({ ...batchesQuery(profile.id, users, page), placeholderData: keepPreviousData })
  const columns = useColumns().filter(({ key }) => isAdmin || key !== 'user')
  return (
    <>
      <PageHead title={batches.title} />
      <PageHint>{batches.hint}</PageHint>
      {isAdmin && (
        <Toolbar>
          <ValueFilter
            label={batches.user}
            field="user"
            scope="all"
            span={{ from: undefined, to: undefined }}
            value={search['user']}
            isFirst
            onChange={(user) => setSearch({ user, p: undefined })}
          />
        </Toolbar>
      )}
      <PagedTable
        label={batches.table}
        columns={columns}
        query={query}
        pageSize={BATCH_PAGE_SIZE}
        isByTime
        areOpened
        empty={
          users.length > 0 ? (
            <EmptyState text={batches.emptyFiltered}>
              <Button variant="default" onClick={() => setSearch({ user: undefined, p: undefined })}>
                {common.clearFilters}
              </Button>
            </EmptyState>
          ) : (
            <EmptyState text={batches.empty}>
              <p>{batches.emptyHint}</p>
            </EmptyState>
          )
        }
      />
    </>
  )
}

function useColumns(): readonly Column<Batch>[] {
  const { batches } = useTexts()
  const { count } = useFormatters()
  const money = (key: 'quota' | 'saved', label: string): Column<Batch> => ({
    key,
    label,
    isNumber: true,
    phone: key === 'quota' ? 'value' : 'line',
    isOptional: key !== 'quota',
    cell: (batch) => <MoneyText quota={batch[key]} />,
  })
  return [
    {
      key: 'batch',
      label: batches.batch,
      phone: 'title',
      cell: ({ id }) => (
        <Link to="/batches/$id" params={{ id }} data-row-link={id}>
          <TruncatedId id={id} />
        </Link>
      ),
    },
    { key: 'state', label: batches.status, cell: ({ status }) => <BatchState status={status} /> },
    { key: 'user', label: batches.user, cell: ({ username }) => <TruncatedText text={username} /> },
    {
      key: 'model',
      label: batches.model,
      cell: ({ model }) => <TruncatedText text={model ?? batches.several} />,
    },
    {
      key: 'progress',
      label: batches.progress,
      isNumber: true,
      cell: (batch) => batches.progressOf(count(endedLines(batch)), count(batch.total)),
    },
    { key: 'failed', label: batches.failed, isNumber: true, cell: ({ failed }) => count(failed) },
    money('quota', batches.cost),
    money('saved', batches.saved),
    { key: 'created', label: batches.created, cell: ({ created_at }) => <TimeText at={created_at} /> },
  ]
}
