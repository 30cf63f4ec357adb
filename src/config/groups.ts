import { GROUP_SETTINGS, type Group } from '../domain/records/group.ts'
import { budgetFields, declaredBudget, requireWholeBudget } from './budgets.ts'
import { decimal, dictionary, type Field, Refusal, section, text } from './fields.ts'
import { declaredShape } from './record-fields.ts'
import { nearest } from '../domain/nearest.ts'
import { keys, type YamlNode } from './yaml-node.ts'

/** The group that exists even if it is not declared. */
export const DEFAULT_GROUP = 'default'

const { defaults } = GROUP_SETTINGS

/** `docs/configuration.md: Groups`. */
export const groups: Field<ReadonlyMap<string, Group>> = dictionary(
  section({ ...declaredShape(GROUP_SETTINGS.fields, { ratio: decimal() }), ...budgetFields() }).superRefine(
    requireWholeBudget,
  ),
  'a mapping from group names',
).transform((declared) => {
  const all = new Map<string, Group>([[DEFAULT_GROUP, { ...defaults, name: DEFAULT_GROUP }]])
  for (const [name, { budget, budget_period, ...settings }] of declared)
    all.set(name, { ...settings, name, budget: declaredBudget({ budget, budget_period }) ?? undefined })
  return all
})

/** The groups that the file names, even if their entries are invalid. */
export function declaredGroups(section: YamlNode): ReadonlyMap<string, Group> {
  const read = groups.safeParse(section)
  if (read.success) return read.data
  return new Map([DEFAULT_GROUP, ...keys(section)].map((name) => [name, { ...defaults, name }]))
}

/** The name of a group that the file declares, or `default`. */
export function groupName(declared: ReadonlySet<string>): Field<string> {
  return text('the name of a group', (given) => {
    if (declared.has(given)) return given
    return new Refusal(`a group that groups declares${suggestion(given, declared)}`)
  })
}

/** ` (premium?)` if a declared group has a similar name. */
export function suggestion(given: string, declared: Iterable<string>): string {
  const meant = nearest(given, declared)
  return meant === undefined ? '' : ` (${meant}?)`
}
