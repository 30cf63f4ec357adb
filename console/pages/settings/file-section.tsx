import type { DeclaredSettings } from '../../api/options.ts'
import { FormSection } from '../../components/form-section.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import type { FileSetting } from './file-settings.ts'
import classes from './settings-page.module.css'

/**
 * Settings that only gateway.yaml can change: each with its value and the line that has it, or with the line to
 * write.
 */
export function FileSection<Name extends string>({
  id,
  title,
  text,
  section,
  rows,
  hints,
  declared,
}: {
  readonly id: string
  readonly title: string
  readonly text: string
  readonly section: 'rate_limits' | 'login' | 'options'
  readonly rows: readonly FileSetting<Name>[]
  readonly hints: Readonly<Record<NoInfer<Name>, string>>
  readonly declared: DeclaredSettings
}) {
  return (
    <FormSection id={id} title={title} text={text} isWide>
      <dl className={classes['declared']}>
        {rows.map(([name, example]) => (
          <div key={name}>
            <dt>
              <code>{name}</code> {hints[name]}
            </dt>
            <dd>
              <SettingInFile path={`${section}.${name}`} declared={declared}>
                {`${section}: { ${name}: ${example} }`}
              </SettingInFile>
            </dd>
          </div>
        ))}
      </dl>
    </FormSection>
  )
}

function SettingInFile({
  path: whole,
  declared: { file, items },
  children: line,
}: {
  readonly path: string
  readonly declared: DeclaredSettings
  /** The line to write where the file does not have the setting. */
  readonly children: string
}) {
  const { settings, audit, common } = useTexts()
  const words: Readonly<Record<string, string>> = audit.words
  const textOf = (value: unknown): string =>
    typeof value === 'boolean' ? (words[String(value)] ?? '') : [value].flat().join(common.comma)
  const found = items.filter(
    ({ path }) => path === whole || path.startsWith(`${whole}.`) || path.startsWith(`${whole}[`),
  )
  if (found.length === 0) return <code className={classes['line']}>{line}</code>
  return found.map(({ path, line: number, value }) => (
    <div key={path}>
      {path === whole ? '' : `${path.slice(whole.length).replace(/^\./, '')}: `}
      {textOf(value)} <small>{settings.fromLine(file, number)}</small>
    </div>
  ))
}
