import { Button } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { ApiKey } from '../../api/keys.ts'
import { type ManagedUser, switchUserKey, userKeysQuery } from '../../api/users.ts'
import { AnswerOf } from '../../components/answer-of.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { sayFailure } from '../../components/notify.tsx'
import { useSignedIn } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

const ENABLED = 1

/** The keys of another user, masked; they can be disabled but not shown. */
export function UserKeys({ user }: { readonly user: ManagedUser }) {
  const { users, keys } = useTexts()
  const { profile } = useSignedIn()
  const columns = useColumns(user)
  return (
    <AnswerOf query={useQuery(userKeysQuery(profile.id, user.id))}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty text={users.noKeys} />
        ) : (
          <DataTable label={keys.title} columns={columns} rows={items} keyOf={({ id }) => id} />
        )
      }
    </AnswerOf>
  )
}

function useColumns(user: ManagedUser): readonly Column<ApiKey>[] {
  const texts = useTexts()
  const { keys, common } = texts
  const { profile } = useSignedIn()
  const client = useQueryClient()
  const words: Readonly<Record<number, string>> = keys.statuses
  const turn = async (key: ApiKey): Promise<void> => {
    try {
      await switchUserKey(user.id, key.id, key.status !== ENABLED)
      await client.invalidateQueries({ queryKey: [profile.id, 'user-keys', user.id] })
    } catch (error) {
      sayFailure(error, texts)
    }
  }
  return [
    { key: 'name', label: keys.texts.name, phone: 'title', cell: ({ name }) => name },
    { key: 'key', label: keys.key, cell: ({ key }) => <code>{key}</code> },
    {
      key: 'spend',
      label: keys.spend,
      isNumber: true,
      cell: ({ used_quota }) => <MoneyText quota={used_quota} />,
    },
    {
      key: 'used',
      label: keys.lastUsed,
      cell: ({ accessed_time }) => (accessed_time > 0 ? <TimeText at={accessed_time} /> : common.never),
    },
    {
      key: 'status',
      label: keys.status,
      phone: 'value',
      cell: ({ status }) => <StateMark tone={status === ENABLED ? 'ok' : 'off'} word={words[status] ?? ''} />,
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
