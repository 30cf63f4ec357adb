import { ActionIcon, Button, Group } from '@mantine/core'
import { IconBan, IconCircleCheck } from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import type { ManagedUser } from '../../api/users.ts'
import { BudgetMeter } from '../../components/budget-meter.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import type { Column } from '../../components/data-table.tsx'
import { RemainingSpendText } from '../../components/remaining-spend-text.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { UserState } from './user-state.tsx'
import { useUserChanges } from './use-user-changes.ts'

const ENABLED = 1

export function useUserColumns(onAddQuota: (user: ManagedUser) => void): readonly Column<ManagedUser>[] {
  const { users, common, limits } = useTexts()
  const { profile } = useSignedInAccount()
  const { turn } = useUserChanges()
  const roles: Readonly<Record<number, string>> = users.roles
  return [
    {
      key: 'name',
      sortField: 'username',
      label: users.name,
      phone: 'title',
      cell: ({ id, username }) => (
        <Link to="/users/$id" params={{ id: String(id) }} data-row-link>
          <TruncatedText text={username} isName />
        </Link>
      ),
    },
    {
      key: 'role',
      label: users.role,
      sortField: 'role',
      isOptional: true,
      cell: ({ role }) => roles[role] ?? String(role),
    },
    {
      key: 'group',
      label: users.group,
      sortField: 'group',
      isOptional: true,
      cell: ({ group }) => <TruncatedText text={group} />,
    },
    {
      key: 'left',
      label: users.left,
      isNumber: true,
      cell: (user) => <RemainingSpendText of={user} group={user.group} />,
    },
    {
      key: 'budget',
      label: limits.budget,
      cell: (user) => (user.budget > 0 ? <BudgetMeter name={user.username} state={user} /> : '–'),
    },
    {
      key: 'spend',
      sortField: 'used_quota',
      label: users.spend,
      isNumber: true,
      cell: ({ used_quota }) => <MoneyText quota={used_quota} />,
    },
    {
      key: 'active',
      sortField: 'last_active',
      label: users.lastActive,
      isOptional: true,
      cell: ({ last_active: at }) => (at > 0 ? <TimeText at={at} /> : common.never),
    },
    {
      key: 'status',
      sortField: 'status',
      label: users.status,
      phone: 'value',
      cell: ({ status }) => <UserState status={status} />,
    },
    {
      key: 'actions',
      label: common.actions,
      isLabelHidden: true,
      phone: 'actions',
      cell: (user) => {
        if (user.role >= profile.role) return null
        const isEnabled = user.status === ENABLED
        const toggle = isEnabled ? common.disable : common.enable
        return (
          <Group gap="xs" justify="flex-end" wrap="nowrap">
            <Button variant="default" size="xs" onClick={() => onAddQuota(user)}>
              {users.addQuota}
            </Button>
            <ActionIcon aria-label={toggle} title={toggle} onClick={() => void turn(user, !isEnabled)}>
              {isEnabled ? <IconBan size={16} /> : <IconCircleCheck size={16} />}
            </ActionIcon>
          </Group>
        )
      },
    },
  ]
}
