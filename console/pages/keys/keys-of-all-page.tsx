import { Button, Select } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { KEY_PAGE_SIZE, keysOfAllQuery, type KeyOfUser } from '../../api/keys.ts'
import type { Column } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { FilterField } from '../../components/filter-field.tsx'
import { KeyState } from '../../components/key-state.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { listOrderOf } from '../../components/sorting.ts'
import { Toolbar } from '../../components/toolbar.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { useKeyUseColumns } from './use-key-columns.tsx'

const END_LENGTH = 4

/** The keys of all users that the administrator manages, and the own ones. */
export function KeysOfAllPage() {
  const { keys, userKeys, common } = useTexts()
  const { profile } = useSignedInAccount()
  const [search, setSearch] = useSearchState()
  const { q, user, end, state, p = '1' } = search
  const page = Number(p)
  const filter = {
    keyword: q,
    user,
    last4: end?.length === END_LENGTH ? end : undefined,
    status: state,
  }
  const query = useQuery({
    ...keysOfAllQuery(profile.id, page, filter, listOrderOf(search)),
    placeholderData: keepPreviousData,
  })
  const columns = useColumns()
  return (
    <>
      <PageHead title={userKeys.title} />
      <Toolbar>
        <FilterField
          label={userKeys.byName}
          value={q ?? ''}
          onFilter={(text) => setSearch({ q: text, p: undefined })}
        />
        <FilterField
          label={userKeys.byUser}
          value={user ?? ''}
          onFilter={(text) => setSearch({ user: text, p: undefined })}
        />
        <FilterField
          label={userKeys.byEnd}
          value={end ?? ''}
          onFilter={(text) => setSearch({ end: text, p: undefined })}
        />
        <Select
          aria-label={keys.status}
          placeholder={keys.status}
          clearable
          clearButtonProps={{ 'aria-label': common.clearFilters }}
          data={Object.entries(keys.statuses).map(([value, label]) => ({ value, label }))}
          value={state ?? null}
          onChange={(chosen) => setSearch({ state: chosen ?? undefined, p: undefined })}
        />
      </Toolbar>
      <PagedTable
        label={userKeys.title}
        columns={columns}
        query={query}
        pageSize={KEY_PAGE_SIZE}
        empty={
          <EmptyState text={userKeys.empty}>
            <Button
              variant="default"
              onClick={() =>
                setSearch({ q: undefined, user: undefined, end: undefined, state: undefined, p: undefined })
              }
            >
              {common.clearFilters}
            </Button>
          </EmptyState>
        }
      />
    </>
  )
}

function useColumns(): readonly Column<KeyOfUser>[] {
  const { keys, userKeys } = useTexts()
  const { profile } = useSignedInAccount()
  return [
    {
      key: 'name',
      sortField: 'name',
      label: keys.texts.name,
      phone: 'title',
      cell: ({ id, user_id, name }) => {
        const text = <TruncatedText text={name} isName />
        return user_id === profile.id ? (
          <Link to="/keys/$id" params={{ id: String(id) }} data-row-link>
            {text}
          </Link>
        ) : (
          <Link to="/users/$id/keys/$key" params={{ id: String(user_id), key: String(id) }} data-row-link>
            {text}
          </Link>
        )
      },
    },
    {
      key: 'user',
      label: userKeys.user,
      cell: ({ user_id, username }) => (
        <Link to="/users/$id" params={{ id: String(user_id) }}>
          <TruncatedText text={username} />
        </Link>
      ),
    },
    { key: 'key', label: keys.key, isOptional: true, cell: ({ key }) => <code>{key}</code> },
    {
      key: 'spend',
      sortField: 'used_quota',
      label: keys.spend,
      isNumber: true,
      cell: ({ used_quota }) => <MoneyText quota={used_quota} />,
    },
    ...useKeyUseColumns(),
    {
      key: 'status',
      sortField: 'status',
      label: keys.status,
      phone: 'value',
      cell: ({ status, stopped }) => <KeyState status={status} isStopped={stopped} />,
    },
  ]
}
