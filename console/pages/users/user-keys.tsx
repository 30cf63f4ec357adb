import { Button } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type ApiKey, keysStoppedByBudgetQuery } from '../../api/keys.ts'
import { type ManagedUser, setUserKeyEnabled, userKeysQuery } from '../../api/users.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { BudgetMeter } from '../../components/budget-meter.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { KeyState } from '../../components/key-state.tsx'
import { RemainingSpendText } from '../../components/remaining-spend-text.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { showFailure } from '../../components/notify.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

const ENABLED = 1

/** The keys of another user, masked; they can be disabled but not shown. */
export function UserKeys({ user }: { readonly user: ManagedUser }) {
  const { users, keys } = useTexts()
  const { profile } = useSignedInAccount()
  const query = useQuery(userKeysQuery(profile.id, user.id))
  const columns = useColumns(user, query.data?.items ?? [])
  return (
    <QueryResult query={query}>
      {({ items }) =>
        items.length === 0 ? (
          <EmptyState text={users.noKeys} />
        ) : (
          <DataTable label={keys.title} columns={columns} rows={items} keyOf={({ id }) => id} />
        )
      }
    </QueryResult>
  )
}

function useColumns(user: ManagedUser, shown: readonly ApiKey[]): readonly Column<ApiKey>[] {
  const texts = useTexts()
  const { keys, common, limits } = texts
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const { data: stopped = [] } = useQuery(keysStoppedByBudgetQuery(profile.id, shown, user.id))
  const turn = async (key: ApiKey): Promise<void> => {
    try {
      await setUserKeyEnabled(user.id, key.id, key.status !== ENABLED)
      await client.invalidateQueries({ queryKey: [profile.id, 'user-keys', user.id] })
    } catch (error) {
      showFailure(error, texts)
    }
  }
  return [
    { key: 'name', label: keys.texts.name, phone: 'title', cell: ({ name }) => name },
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
      cell: ({ name, ...row }) => (row.budget > 0 ? <BudgetMeter name={name} state={row} /> : common.none),
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
        <Button variant="default" size="xs" onClick={() => void turn(key)}>
          {key.status === ENABLED ? common.disable : common.enable}
        </Button>
      ),
    },
  ]
}
