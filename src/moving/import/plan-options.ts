import { RATIO_OPTIONS } from '../../management/settings/model-ratios.ts'
import { settingOf } from '../../management/settings/scalar-options.ts'
import type { FamilyOptions } from './family-options.ts'
import type { PlannedEntry } from './plan-groups.ts'
import { carried, type ReportLine } from './report.ts'

/** Option that is not imported: amounts are converted to the unit here instead. */
const QUOTA_UNIT_OPTION = 'QuotaPerUnit'

const READ_ELSEWHERE: ReadonlySet<string> = new Set([
  QUOTA_UNIT_OPTION,
  'GroupRatio',
  'UserUsableGroups',
  ...RATIO_OPTIONS.keys(),
])

/** Options about prices and permissions that have no counterpart here, with an explanation each. */
const UNSUPPORTED_OPTIONS: ReadonlyMap<string, string> = new Map([
  ['GroupGroupRatio', 'a group has one ratio here, for all users'],
  ['AutoGroups', 'a token has one group here; "auto" becomes the group of its user'],
  ['ModelRequestRateLimitEnabled', 'rate limits are set in gateway.yaml (rate_limits)'],
  ['SensitiveWords', 'nothing is filtered here'],
  ['QuotaForNewUser', 'users are created by administrators here'],
  ['ImageRatio', 'images are charged as the tokens that the provider reports'],
  ['AudioRatio', 'audio is charged as the tokens that the provider reports'],
])

/** Plans the scalar options. Reports unsupported ones that matter, and the names of all others. */
export function planOptions(options: FamilyOptions): {
  readonly entries: readonly PlannedEntry[]
  readonly left: readonly ReportLine[]
} {
  const entries: PlannedEntry[] = []
  const left: ReportLine[] = []
  const others: string[] = []
  for (const name of options.names) {
    const scalar = settingOf(name)
    if (READ_ELSEWHERE.has(name)) continue
    if (scalar) {
      const value = options.text(name)
      if (value === undefined || value === '') continue
      const line = carried('option', undefined, name, [])
      entries.push({ entry: { section: 'options', name: scalar.name, value }, line })
      continue
    }
    const missed = UNSUPPORTED_OPTIONS.get(name)
    if (missed === undefined) others.push(name)
    else left.push({ kind: 'option', id: undefined, name, fate: 'left', notes: [missed] })
  }
  if (others.length > 0) {
    const name = others.length === 1 ? '1 other' : `${others.length} others`
    const note = `not supported: ${others.toSorted().join(', ')}`
    left.push({ kind: 'option', id: undefined, name, fate: 'left', notes: [note] })
  }
  return { entries, left }
}
