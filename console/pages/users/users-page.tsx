import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { USER_PAGE_SIZE, usersQuery } from '../../api/users.ts'
import { AddAmountDialog } from '../../components/add-amount-dialog.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { FilterField } from '../../components/filter-field.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { listOrderOf } from '../../components/sorting.ts'
import { Toolbar } from '../../components/toolbar.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { AddUserDialog } from './add-user-dialog.tsx'
import { InviteDialog } from './invite-dialog.tsx'
import { useAddedQuota } from './use-added-quota.ts'
import { useUserColumns } from './use-user-columns.tsx'

/** All users, for administrators. */
export function UsersPage() {
  const { users, common } = useTexts()
  const { profile } = useSignedInAccount()
  const [search, setSearch] = useSearchState()
  const { q = '', p = '1', new: isNew, invite } = search
  const fund = useAddedQuota()
  const columns = useUserColumns(fund.open)
  const page = Number(p)
  const query = useQuery({
    ...usersQuery(profile.id, page, q, listOrderOf(search)),
    placeholderData: keepPreviousData,
  })
  return (
    <>
      <PageHead title={users.title}>
        <Button variant="default" onClick={() => setSearch({ invite: '1' })}>
          {users.invite}
        </Button>
        <Button
          data-new
          leftSection={<IconPlus size={16} aria-hidden />}
          onClick={() => setSearch({ new: '1' })}
        >
          {users.add}
        </Button>
      </PageHead>
      <Toolbar>
        <FilterField
          label={users.filter}
          value={q}
          onFilter={(text) => setSearch({ q: text, p: undefined })}
        />
      </Toolbar>
      <PagedTable
        label={users.title}
        columns={columns}
        query={query}
        pageSize={USER_PAGE_SIZE}
        empty={
          <EmptyState text={users.emptyFiltered}>
            <Button variant="default" onClick={() => setSearch({ q: undefined, p: undefined })}>
              {common.clearFilters}
            </Button>
          </EmptyState>
        }
      />
      <AddUserDialog opened={isNew !== undefined} onClose={() => setSearch({ new: undefined })} />
      <InviteDialog opened={invite !== undefined} onClose={() => setSearch({ invite: undefined })} />
      <AddAmountDialog {...fund.dialog} />
    </>
  )
}
