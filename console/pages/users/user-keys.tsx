import { Button } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ApiKey, KEY_PAGE_SIZE, keysStoppedByBudgetQuery } from '../../api/keys.ts'
import { type ManagedUser, userKeysQuery } from '../../api/users.ts'
import { BudgetMeter } from '../../components/budget-meter.tsx'
import type { Column } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { KeyState } from '../../components/key-state.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { RemainingSpendText } from '../../components/remaining-spend-text.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { useKeyChanges } from '../../components/use-key-changes.ts'

const ENABLED = 1

/** The keys of another user, masked. Only the user can reveal them. */
export function UserKeys({ user }: { readonly user: ManagedUser }) {
  const { users, keys } = useTexts()
  const { profile } = useSignedInAccount()
  const [{ p = '1' }] = useSearchState()
  const query = useQuery({
    ...userKeysQuery(profile.id, user.id, Number(p)),
    placeholderData: keepPreviousData,
  })
  const columns = useColumns(user, query.data?.items ?? [])
  return (
    <PagedTable
      label={keys.title}
      columns={columns}
      query={query}
      pageSize={KEY_PAGE_SIZE}
      isByTime
      empty={<EmptyState text={users.noKeys} />}
    />
  )
}

function useColumns(user: ManagedUser, shown: readonly ApiKey[]): readonly Column<ApiKey>[] {
  const { keys, common, limits } = useTexts()
  const { profile } = useSignedInAccount()
  const { data: stopped = [] } = useQuery(keysStoppedByBudgetQuery(profile.id, shown, user.id))
  const { turn } = useKeyChanges(user.id)
  return [
    {
      key: 'name',
      label: keys.texts.name,
      phone: 'title',
      cell: ({ id, name }) => (
        <Link to="/users/$id/keys/$key" params={{ id: String(user.id), key: String(id) }} data-row-link>
          <TruncatedText text={name} isName />
        </Link>
      ),
    },
    { key: 'key', label: keys.key, isOptional: true, cell: ({ key }) => <code>{key}</code> },
    {
      key: 'spend',
      label: keys.spend,
      isNumber: true,
      cell: ({ used_quota }) => <MoneyText quota={used_quota} />,
    },
    {
      key: 'left',
      label: keys.left,
      isNumber: true,
      cell: (row) => <RemainingSpendText of={row} group={row.group || user.group} />,
    },
    {
      key: 'budget',
      label: limits.budget,
      cell: ({ name, ...row }) => (row.budget > 0 ? <BudgetMeter name={name} state={row} /> : '–'),
    },
    {
      key: 'used',
      label: keys.lastUsed,
      isOptional: true,
      cell: ({ accessed_time }) => (accessed_time > 0 ? <TimeText at={accessed_time} /> : common.never),
    },
    {
      key: 'status',
      label: keys.status,
      phone: 'value',
      cell: ({ id, status }) => <KeyState status={status} isStopped={stopped.includes(id)} />,
    },
    {
      key: 'actions',
      label: common.actions,
      isLabelHidden: true,
      phone: 'actions',
      cell: (key) => (
        <Button variant="default" size="xs" onClick={() => void turn(key, key.status !== ENABLED)}>
          {key.status === ENABLED ? common.disable : common.enable}
        </Button>
      ),
    },
  ]
}
