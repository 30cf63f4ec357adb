import type { Usage } from '../../api/usage.ts'
import { useTierNames } from '../../components/use-tier-names.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import type { Grouping } from './usage-filter.ts'

/** Sets the names of series for service tiers and regions. Calls that no upstream served have neither. */
export function useSeriesNames(): (usage: Usage, grouping: Grouping) => Usage {
  const { usage: texts } = useTexts()
  const { nameOf } = useTierNames()
  return (usage, grouping) => {
    if (grouping !== 'tier' && grouping !== 'region') return usage
    const labelOf = (key: string): string =>
      key === '' ? texts.unserved[grouping] : grouping === 'tier' ? nameOf(key) : key
    return { ...usage, series: usage.series.map((one) => ({ ...one, label: labelOf(one.key) })) }
  }
}
