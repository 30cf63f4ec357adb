import { Badge } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ApiKey, isLimitedByOperator, keysStoppedByBudgetQuery } from '../../api/keys.ts'
import { BudgetMeter } from '../../components/budget-meter.tsx'
import type { Column } from '../../components/data-table.tsx'
import { RemainingSpendText } from '../../components/remaining-spend-text.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { KeyState } from '../../components/key-state.tsx'
import { showFailure } from '../../components/notify.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { KeyActions } from './key-actions.tsx'
import { KeyCell } from './key-cell.tsx'
import { useKeyChanges } from '../../components/use-key-changes.ts'
import { useRevealedKey } from './use-revealed-key.ts'

export function useKeyColumns(
  shown: readonly ApiKey[],
  onDelete: (key: ApiKey) => void,
): readonly Column<ApiKey>[] {
  const texts = useTexts()
  const { keys, common } = texts
  const { profile } = useSignedInAccount()
  const { data: stopped = [] } = useQuery(keysStoppedByBudgetQuery(profile.id, shown))
  const { turn } = useKeyChanges()
  const [revealed, { reveal, hide }] = useRevealedKey()
  const show = (id: number): void => void reveal(id).catch((error: unknown) => showFailure(error, texts))
  return [
    {
      key: 'name',
      sortField: 'name',
      label: keys.texts.name,
      phone: 'title',
      cell: (row) => (
        <>
          <Link to="/keys/$id" params={{ id: String(row.id) }} data-row-link>
            <TruncatedText text={row.name} isName />
          </Link>{' '}
          {isLimitedByOperator(profile.role, row) && (
            <Badge variant="default" size="sm" title={keys.operatorLimits}>
              {keys.limitedByOperator}
            </Badge>
          )}
        </>
      ),
    },
    {
      key: 'key',
      label: keys.key,
      cell: ({ id, key }) => (
        <KeyCell masked={key} revealed={revealed?.of === id ? revealed.key : undefined} />
      ),
    },
    {
      key: 'spend',
      sortField: 'used_quota',
      label: keys.spend,
      isNumber: true,
      isOptional: true,
      cell: ({ used_quota }) => <MoneyText quota={used_quota} />,
    },
    {
      key: 'left',
      label: keys.left,
      isNumber: true,
      cell: (row) => <RemainingSpendText of={row} group={row.group || profile.group} />,
    },
    ...useKeyUseColumns(),
    {
      key: 'status',
      sortField: 'status',
      label: keys.status,
      phone: 'value',
      cell: ({ id, status }) => <KeyState status={status} isStopped={stopped.includes(id)} />,
    },
    {
      key: 'actions',
      label: common.actions,
      isLabelHidden: true,
      phone: 'actions',
      cell: (row) => (
        <KeyActions
          status={row.status}
          isRevealed={revealed?.of === row.id}
          onReveal={() => (revealed?.of === row.id ? hide() : show(row.id))}
          onSwitch={(isEnabled) => void turn(row, isEnabled)}
          onDelete={() => onDelete(row)}
        />
      ),
    },
  ]
}

/** The columns with the budget of a key and the time of its last call. */
export function useKeyUseColumns(): readonly Column<ApiKey>[] {
  const { keys, common, limits } = useTexts()
  return [
    {
      key: 'budget',
      label: limits.budget,
      cell: ({ name, ...row }) => (row.budget > 0 ? <BudgetMeter name={name} state={row} /> : '–'),
    },
    {
      key: 'used',
      sortField: 'accessed_time',
      label: keys.lastUsed,
      isOptional: true,
      cell: ({ accessed_time }) => (accessed_time > 0 ? <TimeText at={accessed_time} /> : common.never),
    },
  ]
}
