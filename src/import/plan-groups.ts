import { type Decimal, decimalText } from '../domain/decimal.ts'
import type { StoredEntry } from '../domain/settings.ts'
import { Cells } from './cells.ts'
import { splitList } from './source-channel.ts'
import type { FamilyDatabase } from './family.ts'
import type { FamilyOptions } from './family-options.ts'
import type { ReportLine } from './report.ts'

const RATIO_ONE: Decimal = { digits: 1n, scale: 0 }

/** Groups that new-api opens to everybody by default; one-api has no open groups. */
const DEFAULT_OPEN_GROUPS = { 'new-api': ['default', 'vip'], 'one-api': [] } as const

/** Name by which the other gateway chooses among groups; not supported here. */
export const AUTO_GROUP = 'auto'

/** Entry of the settings to be written, with its report line. */
export interface PlannedEntry {
  readonly entry: StoredEntry
  readonly line: ReportLine
}

/** Plans the groups that have a ratio, and those that rows name without one: their ratio is 1. */
export function planGroups(source: FamilyDatabase, options: FamilyOptions): PlannedEntry[] {
  const ratios = options.decimals('GroupRatio') ?? new Map<string, Decimal>()
  const usable = options.mapping('UserUsableGroups')
  const open = new Set<string>(usable ? usable.keys() : DEFAULT_OPEN_GROUPS[source.family])
  const names = new Set([...ratios.keys(), ...namedIn(source)])
  names.delete(AUTO_GROUP)
  return [...names].map((name) => {
    const ratio = ratios.get(name)
    const notes = ratio ? [] : ['it has no ratio there, which means 1']
    return {
      entry: {
        section: 'groups',
        name,
        value: { ratio: decimalText(ratio ?? RATIO_ONE), open: name === 'default' || open.has(name) },
      },
      line: { kind: 'group', id: undefined, name, fate: 'carried', notes },
    }
  })
}

function namedIn({ users, tokens, channels }: FamilyDatabase): string[] {
  const named = [...users, ...tokens, ...channels].flatMap((row) => {
    const cells = new Cells(row)
    return splitList(cells.lenient(() => cells.text('group'), ''))
  })
  return [...new Set(named)].filter(
    (name) => name.length <= 200 && !/\p{Cc}/u.test(name) && name !== '__proto__',
  )
}
