import { z } from 'zod'
import { decimalText } from '../../domain/decimal.ts'
import { versionOf } from '../../domain/object-version.ts'
import { type Group, GROUP_SETTINGS } from '../../domain/records/group.ts'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import { budgetFields, groupBudgets } from '../account-limits.ts'
import { readInput, textField } from '../input-fields.ts'
import type { AdministrationServices } from '../services.ts'
import { groupJson } from '../settings/option-mappings.ts'

/** Maximum number of members that are listed by name. */
const MAX_NAMED_MEMBERS = 100

type GroupServices = Pick<AdministrationServices, 'store' | 'settings' | 'nowMs' | 'liveConfig'>

/** A group: its terms, its budget, who belongs to it and what it may call. */
export const groupSchema = z.object({
  group: z.string(),
  ratio: z.string().describe('factor of all prices, as a decimal'),
  open: z.boolean().describe('whether keys of any user may name the group'),
  guards: z.array(z.string()),
  members: z.int().describe('number of users whose group it is'),
  models: z.array(z.string()).describe('models that its channels serve'),
  channels: z.array(z.string()).describe('channels that serve it'),
  ...budgetFields,
  managed: z.boolean().describe('whether gateway.yaml declares it'),
  version: z.string(),
})

export type GroupObject = z.output<typeof groupSchema>

/** The version of a group. It depends only on what people edit, not on what was spent. */
export function groupVersion(group: Omit<Group, 'name'>): string {
  return versionOf([groupJson(group)])
}

/** All groups, in the order of their names. */
export async function listGroups(services: GroupServices): Promise<GroupObject[]> {
  // The budgets are those of the same settings.
  const settings = services.settings()
  const budgets = await groupBudgets(services)
  return Promise.all(
    budgets.map(async ({ group, ...budget }) => ({
      ...(await termsOf(services, settings, group)),
      ...budget,
    })),
  )
}

/** One group as lists show it. */
export async function groupObject(services: GroupServices, name: string): Promise<GroupObject> {
  const settings = services.settings()
  const budget = (await groupBudgets(services)).find(({ group }) => group === name)
  if (!budget) throw new GatewayError('not_found', `there is no group "${name}"`)
  return { ...(await termsOf(services, settings, name)), ...budget }
}

const EXPECTED = 'expected the name of a group'

/** The name of a group. */
export const groupField = textField(EXPECTED).min(1, { error: EXPECTED }).max(200, { error: EXPECTED })

const INPUT = z.object({ group: groupField }, { error: 'expected an object that names a group' })

/** One group, with the names of its first members. */
export async function showGroup(
  services: GroupServices,
  given: z.input<typeof INPUT>,
): Promise<GroupObject & { readonly member_names: readonly string[] }> {
  const { group } = readInput(INPUT, given)
  const found = await groupObject(services, group)
  const { users } = await membersOf(services, group, MAX_NAMED_MEMBERS)
  return { ...found, member_names: users.map(({ username }) => username) }
}

function membersOf({ store }: GroupServices, group: string, limit: number) {
  return store.read('pageOfUsers', { keyword: '', group, offset: 0, limit })
}

async function termsOf(services: GroupServices, { groups, channels }: Settings, name: string) {
  const group = groups.get(name) ?? GROUP_SETTINGS.defaults
  const serving = channels.filter((channel) => channel.groups.includes(name))
  return {
    group: name,
    ratio: decimalText(group.ratio),
    open: group.open,
    guards: [...group.guards],
    members: (await membersOf(services, name, 0)).total,
    models: [...new Set(serving.flatMap(({ models }) => models))].toSorted(),
    channels: serving.map((channel) => channel.name),
    managed: services.liveConfig.declared.groups.has(name),
    version: groupVersion(group),
  }
}
