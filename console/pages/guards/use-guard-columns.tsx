import { ActionIcon } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import type { Guard } from '../../api/guards.ts'
import { ManagedMark } from '../../components/managed-mark.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import type { Column } from '../../components/data-table.tsx'
import { useFormatters } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { kindOfMatch, matchSummary } from './match-forms.ts'

export function useGuardColumns(onDelete: (guard: Guard) => void): readonly Column<Guard>[] {
  const texts = useTexts()
  const { guards: t, common } = texts
  const { count, duration } = useFormatters()
  const kinds: Readonly<Record<string, string>> = t.kinds
  return [
    {
      key: 'name',
      label: t.name,
      phone: 'title',
      sortBy: ({ name }) => name,
      cell: (guard) => <GuardName guard={guard} />,
    },
    {
      key: 'mode',
      label: t.mode,
      phone: 'value',
      sortBy: ({ mode }) => mode,
      cell: ({ mode }) => <StateMark tone={mode === 'enforce' ? 'ok' : 'off'} word={t.modes[mode]} />,
    },
    { key: 'do', label: t.do, sortBy: (guard) => guard.do, cell: (guard) => t.actions[guard.do] },
    {
      key: 'match',
      label: t.match,
      isOptional: true,
      cell: ({ match }) => {
        const kind = kindOfMatch(match)
        return (
          <TruncatedText
            text={[kinds[kind] ?? kind, matchSummary(match, texts)].filter(Boolean).join(common.colon)}
            isList
          />
        )
      },
    },
    {
      key: 'calls',
      label: t.calls,
      isNumber: true,
      sortBy: ({ calls }) => calls,
      cell: ({ calls }) => count(calls),
    },
    {
      key: 'matches',
      label: t.matches,
      isNumber: true,
      sortBy: ({ matches }) => matches,
      cell: ({ matches }) => count(matches),
    },
    {
      key: 'blocked',
      label: t.blocked,
      isNumber: true,
      sortBy: ({ blocked }) => blocked,
      cell: ({ blocked }) => count(blocked),
    },
    {
      key: 'failed',
      label: t.failed,
      isNumber: true,
      isOptional: true,
      sortBy: ({ failed }) => failed,
      cell: ({ failed }) => count(failed),
    },
    {
      key: 'delay',
      label: t.delay,
      isNumber: true,
      isOptional: true,
      sortBy: ({ delay_p95_ms: delay }) => delay ?? -1,
      cell: ({ delay_p95_ms: delay }) => (delay === null ? '–' : duration(delay)),
    },
    {
      key: 'actions',
      label: common.actions,
      isLabelHidden: true,
      phone: 'actions',
      cell: (guard) =>
        !guard.managed && (
          <ActionIcon
            aria-label={`${common.delete} ${guard.name}`}
            title={common.delete}
            onClick={() => onDelete(guard)}
          >
            <IconTrash size={16} />
          </ActionIcon>
        ),
    },
  ]
}

function GuardName({ guard: { name, managed, managed_by: by } }: { readonly guard: Guard }) {
  return (
    <>
      <Link to="/guards/$name" params={{ name }} data-row-link>
        <TruncatedText text={name} isName />
      </Link>
      {managed && <ManagedMark by={by} />}
    </>
  )
}
