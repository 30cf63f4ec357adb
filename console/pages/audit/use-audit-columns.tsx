import { Link } from '@tanstack/react-router'
import type { AuditEntry } from '../../api/audit.ts'
import type { Column } from '../../components/data-table.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './audit-page.module.css'

/** The number of changes of an entry that are shown at first. */
const SHOWN = 3

/** The columns of the audit log. */
export function useAuditColumns(): readonly Column<AuditEntry>[] {
  const { audit } = useTexts()
  const words: Readonly<Record<string, string>> = audit.actions
  return [
    { key: 'time', label: audit.time, phone: 'value', cell: ({ at }) => <TimeText at={at} /> },
    { key: 'who', label: audit.who, phone: 'title', cell: (entry) => <Who entry={entry} /> },
    {
      key: 'action',
      label: audit.action,
      cell: ({ action }) => words[action.split('.')[1] ?? ''] ?? action,
    },
    { key: 'object', label: audit.object, cell: ({ object }) => <ObjectName object={object} /> },
    { key: 'change', label: audit.change, cell: ({ changes }) => <Changes changes={changes} /> },
  ]
}

function Who({ entry: { actor, via, address } }: { readonly entry: AuditEntry }) {
  const { audit } = useTexts()
  const name = actor === '' ? audit.nobody : actor
  const origin = [audit.vias[via], address].filter((part) => part !== '' && part !== name).join(', ')
  return (
    <span className={classes['two']}>
      {name}
      <small>{origin}</small>
    </span>
  )
}

function ObjectName({ object: { kind, id, name } }: { readonly object: AuditEntry['object'] }) {
  const { audit } = useTexts()
  const shown = name === '' ? `${id ?? ''}` : name
  return (
    <span className={classes['two']}>
      {id !== null && (kind === 'user' || kind === 'channel') ? (
        <Link to={kind === 'user' ? '/users/$id' : '/channels/$id'} params={{ id: String(id) }}>
          {shown}
        </Link>
      ) : (
        shown
      )}
      <small>{audit.kinds[kind]}</small>
    </span>
  )
}

function Changes({ changes }: { readonly changes: AuditEntry['changes'] }) {
  const { audit } = useTexts()
  const rest = changes.slice(SHOWN)
  return (
    <div className={classes['changes']}>
      <ChangeList changes={changes.slice(0, SHOWN)} />
      {rest.length > 0 && (
        <details>
          <summary>{audit.more(rest.length)}</summary>
          <ChangeList changes={rest} />
        </details>
      )}
    </div>
  )
}

function ChangeList({ changes }: { readonly changes: AuditEntry['changes'] }) {
  const { audit } = useTexts()
  return (
    <ul>
      {changes.map(({ field, before, after }) => (
        <li key={field}>
          <code>{field}</code>
          {!isNothing(before) && (
            <>
              <del title={audit.before}>{valueText(before)}</del>
              <span aria-hidden>{'→'}</span>
            </>
          )}
          <ins title={audit.after}>{valueText(after)}</ins>
        </li>
      ))}
    </ul>
  )
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined || value === ''
}

function valueText(value: unknown): string {
  if (isNothing(value)) return '–'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
