import type { DeclaredSettings } from '../../api/options.ts'
import { FormSection } from '../../components/form-section.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './settings-page.module.css'

/** A section of the settings that only gateway.yaml can set: its values, each with its line number. */
export function ConfigFileSection({
  title,
  text,
  section,
  declared: { file, items },
}: {
  readonly title: string
  readonly text: string
  readonly section: 'rate_limits' | 'login'
  readonly declared: DeclaredSettings
}) {
  const { settings } = useTexts()
  const found = items.filter(({ path }) => path.startsWith(`${section}.`) || path.startsWith(`${section}[`))
  return (
    <FormSection title={title} text={text}>
      {found.length === 0 ? (
        <span>{settings.notDeclared}</span>
      ) : (
        <dl className={classes['declared']}>
          {found.map(({ path, line, value }) => (
            <div key={path}>
              <dt>{path.slice(section.length).replace(/^\./, '')}</dt>
              <dd>
                {textOf(value)} <small>{settings.fromLine(file, line)}</small>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </FormSection>
  )
}

function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join(', ') : String(value)
}
