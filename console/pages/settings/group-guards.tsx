import type { DeclaredSettings } from '../../api/options.ts'
import { GuardNamesInput } from '../../components/guard-names-input.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { lineOfDeclaredEntry } from './line-of-declared-entry.ts'
import classes from './settings-page.module.css'

/**
 * The guards that additionally check the calls of a group. Those from gateway.yaml cannot be changed here.
 */
export function GroupGuards({
  names,
  value,
  declared,
  onChange,
}: {
  readonly names: readonly string[]
  /** A JSON object: lists of guard names by group. */
  readonly value: string
  readonly declared: DeclaredSettings
  readonly onChange: (value: string) => void
}) {
  const { guards, settings } = useTexts()
  const given = JSON.parse(value) as Readonly<Record<string, string[]>>
  return names.map((name) => {
    const line = lineOfDeclaredEntry(declared, 'groups', name, 'guards')
    return (
      <div key={name} className={classes['row']}>
        <GuardNamesInput
          label={guards.namesOf(name)}
          disabled={line !== undefined}
          value={given[name] ?? []}
          onChange={(chosen) => {
            const { [name]: _, ...others } = given
            onChange(JSON.stringify(chosen.length === 0 ? others : { ...given, [name]: chosen }))
          }}
        />
        {line !== undefined && (
          <span className={classes['from']}>{settings.fromLine(declared.file, line)}</span>
        )}
      </div>
    )
  })
}
