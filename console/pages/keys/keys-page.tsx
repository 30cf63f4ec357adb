import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type ApiKey, KEY_PAGE_SIZE, keysQuery } from '../../api/keys.ts'
import { BudgetMeters } from '../../components/budget-meter.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { FilterField } from '../../components/filter-field.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { listOrderOf } from '../../components/sorting.ts'
import { Toolbar } from '../../components/toolbar.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { CreateKeyDialog } from './create-key-dialog.tsx'
import { DeleteKeyDialog } from './delete-key-dialog.tsx'
import { useKeyChanges } from '../../components/use-key-changes.ts'
import { useAccountLimits } from '../../components/use-account-limits.ts'
import { useKeyColumns } from './use-key-columns.tsx'

/** The account's own keys. */
export function KeysPage() {
  const { keys, common } = useTexts()
  const { profile } = useSignedInAccount()
  const [search, setSearch] = useSearchState()
  const { q = '', p = '1', new: isNew, setup } = search
  const navigate = useNavigate()
  const [toDelete, setToDelete] = useState<ApiKey>()
  const { remove } = useKeyChanges()
  const page = Number(p)
  const account = useAccountLimits()
  const query = useQuery({
    ...keysQuery(profile.id, page, q, listOrderOf(search)),
    placeholderData: keepPreviousData,
  })
  const columns = useKeyColumns(query.data?.items ?? [], setToDelete)
  const create = (
    <Button data-new leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setSearch({ new: '1' })}>
      {keys.create}
    </Button>
  )
  const isEmpty = q === '' && query.data?.total === 0
  return (
    <>
      <PageHead title={keys.title}>{!isEmpty && create}</PageHead>
      <BudgetMeters budgets={account.budgets} />
      <Toolbar>
        <FilterField
          label={keys.filter}
          value={q}
          onFilter={(text) => setSearch({ q: text, p: undefined })}
        />
      </Toolbar>
      <PagedTable
        label={keys.title}
        columns={columns}
        query={query}
        pageSize={KEY_PAGE_SIZE}
        empty={
          <EmptyState text={q === '' ? keys.empty : keys.emptyFiltered}>
            {q === '' ? (
              create
            ) : (
              <Button variant="default" onClick={() => setSearch({ q: undefined, p: undefined })}>
                {common.clearFilters}
              </Button>
            )}
          </EmptyState>
        }
      />
      <CreateKeyDialog
        opened={isNew !== undefined}
        onClose={() => setSearch({ new: undefined })}
        onDone={() => setup !== undefined && void navigate({ to: '/setup' })}
      />
      <DeleteKeyDialog apiKey={toDelete} onDelete={remove} onClose={() => setToDelete(undefined)} />
    </>
  )
}
