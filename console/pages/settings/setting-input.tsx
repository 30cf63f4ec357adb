import { Select, Switch, TextInput } from '@mantine/core'
import { IconLock } from '@tabler/icons-react'
import type { Setting } from '../../../src/domain/options.ts'
import type { GatewayOption } from '../../api/options.ts'
import { useTexts } from '../../locales/use-texts.tsx'

/** The input for one option; it cannot be changed if gateway.yaml sets the option. */
export function SettingInput({
  field,
  option,
  source,
  typed,
  error,
  onChange,
}: {
  readonly field: Setting
  readonly option: GatewayOption | undefined
  /** The place in gateway.yaml that sets the option; empty if there is none. */
  readonly source: string
  readonly typed: string | undefined
  readonly error: string | undefined
  readonly onChange: (value: string) => void
}) {
  const { settings } = useTexts()
  const [label, hint] = settings.options[field.key]
  const value = typed ?? option?.value ?? ''
  const isLocked = option?.managed ?? false
  const common = {
    label,
    disabled: isLocked,
    description: isLocked ? `${hint} (${source})` : hint,
    error,
  }
  const lock = isLocked ? <IconLock size={14} aria-hidden /> : undefined
  switch (field.type) {
    case 'flag':
      return (
        <Switch
          {...common}
          checked={value === 'true'}
          onChange={({ currentTarget: { checked } }) => onChange(String(checked))}
        />
      )
    case 'choice':
      return (
        <Select
          {...common}
          allowDeselect={false}
          data={field.choices.map((choice) => ({ value: choice, label: settings.values[choice] }))}
          value={value}
          onChange={(chosen) => onChange(chosen ?? value)}
          {...(lock && { rightSection: lock })}
        />
      )
    case 'integer':
    case 'decimal':
      return (
        <TextInput
          {...common}
          inputMode={field.type === 'decimal' ? 'decimal' : 'numeric'}
          value={value}
          rightSection={lock}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )
  }
}
