import type { Budget } from '../../domain/budget.ts'
import { decimalText } from '../../domain/decimal.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { type Group, GROUP_SETTINGS } from '../../domain/records/group.ts'
import type { Settings } from '../../domain/settings.ts'
import { decimalsIn, decimalsText, mappingIn, sameDecimal } from './decimal-map.ts'
import { type Change, managed, type OptionState } from './option-change.ts'

type Groups = Settings['groups']

/** An option whose value is a JSON object by group. */
interface GroupOption {
  text(groups: Groups): string
  changes(value: string, state: OptionState, key: string): Change[]
}

const { defaults } = GROUP_SETTINGS

/** The options that are settings of groups, in the order of responses. */
export const GROUP_OPTIONS: ReadonlyMap<string, GroupOption> = new Map<string, GroupOption>([
  ['GroupRatio', { text: ratiosText, changes: ratioChanges }],
  ['UserUsableGroups', { text: openGroupsText, changes: openGroupChanges }],
  ['GroupBudget', { text: budgetsText, changes: budgetChanges }],
])

function ratiosText(groups: Groups): string {
  return decimalsText(new Map([...groups.values()].map(({ name, ratio }) => [name, ratio])))
}

// Stored groups without a ratio are removed.
function ratioChanges(value: string, state: OptionState, key: string): Change[] {
  const ratios = decimalsIn(key, value)
  const set = changesOf(ratios.keys(), state, key, (name, group) => {
    const ratio = ratios.get(name)!
    return group && sameDecimal(group.ratio, ratio) ? undefined : groupJson({ open: false, ...group, ratio })
  })
  const removed = state.stored.entries.filter(
    ({ section, name }) => section === 'groups' && !ratios.has(name),
  )
  return [...set, ...removed.map(({ name }): Change => ({ section: 'groups', name, value: undefined }))]
}

/** The open groups, each with its name as its description. */
function openGroupsText(groups: Groups): string {
  const open = [...groups.values()].filter((group) => group.open)
  return JSON.stringify(Object.fromEntries(open.map(({ name }) => [name, name])))
}

function openGroupChanges(value: string, state: OptionState, key: string): Change[] {
  const named = mappingIn(key, value)
  const names = new Set([...state.settings.groups.keys(), ...named.keys()])
  return changesOf(names, state, key, (name, group) => {
    const open = named.has(name)
    return group?.open === open ? undefined : groupJson({ ...defaults, ...group, open })
  })
}

function budgetsText(groups: Groups): string {
  const budgets = [...groups.values()].filter(({ budget }) => budget)
  return JSON.stringify(Object.fromEntries(budgets.map(({ name, budget }) => [name, budgetJson(budget)])))
}

// A group that the value does not name loses its budget.
function budgetChanges(value: string, state: OptionState, key: string): Change[] {
  mappingIn(key, value)
  const given = new Map(Object.entries(JSON.parse(value) as JsonObject))
  const names = new Set([...state.settings.groups.keys(), ...given.keys()])
  return changesOf(names, state, key, (name, group) => {
    const budget = given.get(name)
    if (isSameBudget(group?.budget, budget)) return undefined
    const others = groupJson({ ...defaults, open: false, ...group, budget: undefined })
    return { ...others, ...(isObject(budget) && budget) }
  })
}

/** Changes of these groups; `next` returns what a group becomes, or undefined if it stays as it is. */
function changesOf(
  names: Iterable<string>,
  { settings, liveConfig }: OptionState,
  key: string,
  next: (name: string, group: Group | undefined) => JsonObject | undefined,
): Change[] {
  return [...names].flatMap((name): Change[] => {
    const value = next(name, settings.groups.get(name))
    if (!value) return []
    if (liveConfig.declared.groups.has(name)) throw managed(key, `groups.${name}`)
    return [{ section: 'groups', name, value }]
  })
}

function groupJson({ ratio, open, budget }: Omit<Group, 'name'>): JsonObject {
  return { ratio: decimalText(ratio), open, ...budgetJson(budget) }
}

/** A budget in the form of gateway.yaml; empty if there is none. */
function budgetJson(budget: Budget | undefined): JsonObject {
  return budget ? { budget: budget.amount, budget_period: budget.period } : {}
}

function isSameBudget(budget: Budget | undefined, given: Json | undefined): boolean {
  const now = budgetJson(budget)
  const { budget: amount, budget_period: period, ...others } = isObject(given) ? given : {}
  if (given !== undefined && (!isObject(given) || Object.keys(others).length > 0)) return false
  return amount === now['budget'] && period === now['budget_period']
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
