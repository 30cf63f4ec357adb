import { Group, Radio, Select } from '@mantine/core'
import { FormSection } from '../../components/form-section.tsx'
import {
  browserZone,
  type Language,
  LANGUAGES,
  setPreferences,
  type ThemeChoice,
  usePreferences,
} from '../../components/preferences.ts'
import { useTexts } from '../../locales/use-texts.tsx'

/** Settings for theme, language and time zone, which are stored in this browser. */
export function DisplaySection() {
  const { account, shell } = useTexts()
  const { theme, language, timeZone } = usePreferences()
  const own = browserZone()
  const zones = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')]
  return (
    <FormSection title={account.display}>
      <Radio.Group
        label={account.theme}
        value={theme}
        onChange={(choice) => setPreferences({ theme: choice })}
      >
        <Group gap="lg" mt="xs">
          {(Object.entries(shell.themes) as [ThemeChoice, string][]).map(([choice, label]) => (
            <Radio key={choice} value={choice} label={label} />
          ))}
        </Group>
      </Radio.Group>
      <Select
        label={account.language}
        allowDeselect={false}
        data={Object.entries(LANGUAGES).map(([value, label]) => ({ value, label }))}
        value={language}
        onChange={(choice) => setPreferences({ language: (choice ?? 'en') as Language })}
      />
      <Select
        label={account.timeZone}
        searchable
        allowDeselect={false}
        data={[
          { value: own, label: account.browserZone(own) },
          ...zones.filter((zone) => zone !== own).map((zone) => ({ value: zone, label: zone })),
        ]}
        limit={50}
        value={timeZone}
        onChange={(zone) => setPreferences({ timeZone: zone ?? own })}
      />
    </FormSection>
  )
}
