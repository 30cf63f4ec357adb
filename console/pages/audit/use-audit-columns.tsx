import { Link } from '@tanstack/react-router'
import type { AuditEntry } from '../../api/audit.ts'
import type { Column } from '../../components/data-table.tsx'
import { useFormatters } from '../../components/session.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './audit-page.module.css'
import { type ChangeText, changeText } from './audit-change-text.ts'

/** Maximum number of changes in an entry that are shown before the entry is opened. */
const SHOWN = 3

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
    { key: 'change', label: audit.change, cell: (entry) => <Changes entry={entry} /> },
  ]
}

function Who({ entry: { actor, via, address } }: { readonly entry: AuditEntry }) {
  const { audit, common } = useTexts()
  const name = actor === '' ? audit.nobody : actor
  const origin = [audit.vias[via], address].filter((part) => part !== '' && part !== name).join(common.comma)
  return (
    <span className={classes['two']}>
      <TruncatedText text={name} isName />
      <small title={origin}>{origin}</small>
    </span>
  )
}

function ObjectName({ object: { kind, id, name, owner } }: { readonly object: AuditEntry['object'] }) {
  const { audit } = useTexts()
  const shown = name === '' ? `${id ?? ''}` : name
  const kindText = owner ? audit.keyOf(owner.name) : audit.kinds[kind]
  return (
    <span className={classes['two']}>
      {id !== null && (kind === 'user' || kind === 'channel') ? (
        <Link to={kind === 'user' ? '/users/$id' : '/channels/$id'} params={{ id: String(id) }}>
          <TruncatedText text={shown} isName />
        </Link>
      ) : (
        <TruncatedText text={shown} isName />
      )}
      <small title={kindText}>{kindText}</small>
    </span>
  )
}

function Changes({ entry: { object, changes } }: { readonly entry: AuditEntry }) {
  const texts = useTexts()
  const formats = useFormatters()
  const inWords = changes.map((change) => changeText(change, object, texts, formats))
  const rest = inWords.slice(SHOWN)
  return (
    <div className={classes['changes']}>
      <ChangeList changes={inWords.slice(0, SHOWN)} />
      {rest.length > 0 && (
        <details>
          <summary>{texts.audit.more(rest.length)}</summary>
          <ChangeList changes={rest} />
        </details>
      )}
    </div>
  )
}

/** Maximum number of characters of a value that are shown before it is opened. */
const SHOWN_CHARACTERS = 96

/** Shows a value; a long value is shortened until it is opened. */
function Value({ text }: { readonly text: string }) {
  if (text.length <= SHOWN_CHARACTERS) return text
  return (
    <details>
      <summary>{`${text.slice(0, SHOWN_CHARACTERS)}…`}</summary>
      {text}
    </details>
  )
}

function ChangeList({ changes }: { readonly changes: readonly ChangeText[] }) {
  const { audit, common } = useTexts()
  return (
    <ul>
      {changes.map(({ field, before, after }, index) => (
        <li key={index}>
          <span>
            {field}
            {common.colon}
          </span>
          {before !== undefined && (
            <>
              <del title={audit.before}>
                <Value text={before} />
              </del>{' '}
              <span aria-hidden>{'→'}</span>{' '}
            </>
          )}
          <ins title={audit.after}>
            <Value text={after} />
          </ins>
        </li>
      ))}
    </ul>
  )
}
