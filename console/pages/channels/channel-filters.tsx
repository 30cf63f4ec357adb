import { Group, Radio } from '@mantine/core'
import { FilterField } from '../../components/filter-field.tsx'
import { Toolbar } from '../../components/toolbar.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** The conditions by which channels can be filtered, in the order in which they are offered. */
const CHOICES = ['works', 'degraded', 'failing', 'resting', 'untried', 'drained', 'disabled'] as const

export function ChannelFilters({
  keyword,
  condition,
  onFilter,
}: {
  readonly keyword: string
  /** The chosen condition; empty for all channels. */
  readonly condition: string
  readonly onFilter: (changes: {
    readonly q?: string | undefined
    readonly state?: string | undefined
  }) => void
}) {
  const { channels } = useTexts()
  return (
    <Toolbar>
      <FilterField
        label={channels.filter}
        value={keyword}
        onFilter={(text) => onFilter({ q: text === '' ? undefined : text })}
      />
      <div>
        <Radio.Group
          aria-label={channels.statesLabel}
          value={condition}
          onChange={(chosen) => onFilter({ state: chosen === '' ? undefined : chosen })}
        >
          <Group gap="md">
            <Radio size="xs" value="" label={channels.allStates} />
            {CHOICES.map((name) => (
              <Radio key={name} size="xs" value={name} label={channels.states[name]} />
            ))}
          </Group>
        </Radio.Group>
      </div>
    </Toolbar>
  )
}
